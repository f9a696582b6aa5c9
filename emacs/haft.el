;;; haft.el --- Answer the questions of AI agents, and undo what they did  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, convenience, processes
;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; haft gives AI agents tools that ask first, show what they would do, and can
;; be undone.  This package shows those questions in Emacs:
;;
;;   M-x haft-connect       connects; a gateway is started where none runs
;;   M-x haft-next-question shows what is asked; y, n, a, e, d, ? and q answer
;;   M-x haft-approvals     lists what is asked
;;   M-x haft-log           lists what was called; u undoes, r redoes
;;   M-x haft-run-tool      runs a tool
;;
;; Buffers that visit a file which a call has changed are read again, unless
;; you have changed them too.

;;; Code:

(require 'haft-approval)
(require 'haft-client)
(require 'haft-log)
(require 'haft-run)

(defcustom haft-revert-buffers t
  "Whether buffers are read again when a call has changed their file."
  :type 'boolean
  :group 'haft)

;;;; The mode line

(defvar haft-mode-line "" "What the mode line says of haft.")
(put 'haft-mode-line 'risky-local-variable t)

(defvar haft--mode-line-map
  (let ((map (make-sparse-keymap)))
    (define-key map [mode-line mouse-1] #'haft-next-question)
    map)
  "Keys on the mode line.")

(defun haft--update-mode-line ()
  "Say in the mode line how many questions are open."
  (let ((open (length haft-questions)))
    (setq haft-mode-line
          (pcase haft-state
            ('off "")
            ('on (propertize (format " haft:%d" open)
                             'face (if (> open 0) 'mode-line-emphasis 'mode-line)
                             'mouse-face 'mode-line-highlight 'local-map haft--mode-line-map
                             'help-echo (format "%s open; mouse-1 shows the oldest" (haft-count open "question"))))
            (_ (propertize " haft:…" 'face 'shadow 'help-echo "haft is not connected at the moment")))))
  (force-mode-line-update t))

;;;; Files

(defvar haft--workspaces (make-hash-table :test #'equal) "In which folder calls have worked.")

(defun haft--local-p ()
  "Whether the gateway works on the files of this machine."
  (or (null haft-url)
      (member (url-host (url-generic-parse-url haft-url)) '("localhost" "127.0.0.1" "[::1]" "::1"))))

(defun haft-file-event (name data)
  "Read buffers again whose files were changed, as the event NAME with DATA says."
  (when (and haft-revert-buffers (haft--local-p)
             (member name '("changes.committed" "changes.undone" "file.changed"))
             (seq-some #'haft--visited-p (haft-items (haft-get data 'changes))))
    (let* ((id (haft-get data 'of)) (folder (gethash id haft--workspaces)) (changes (haft-items (haft-get data 'changes))))
      (if folder (haft--revert-changed folder changes)
        ;; An event does not say where its call has worked.
        (haft-request "GET" (haft-path "/api/calls/%s" id)
                      (lambda (status value)
                        (let ((folder (haft-get value 'workspace)))
                          (when (and (eql status 200) (stringp folder) (file-name-absolute-p folder))
                            (haft-remember haft--workspaces id folder)
                            (haft--revert-changed folder changes)))))))))

(defun haft--visited-p (change)
  "Whether a buffer visits a file that is called as CHANGE says, wherever that is."
  (let ((names (mapcar (lambda (path) (and (stringp path) (file-name-nondirectory path)))
                       (list (haft-get change 'path) (haft-get change 'from)))))
    (seq-some (lambda (buffer)
                (let ((file (buffer-file-name buffer)))
                  (and file (or (member (file-name-nondirectory file) names)
                                (member (file-name-nondirectory (buffer-local-value 'buffer-file-truename buffer)) names)))))
              (buffer-list))))

(defun haft--revert-changed (folder changes)
  "Read the buffers again that visit what CHANGES name in FOLDER."
  (dolist (change changes)
    (dolist (path (delq nil (list (haft-get change 'path) (haft-get change 'from))))
      (when-let ((buffer (and (stringp path) (find-buffer-visiting (expand-file-name path folder)))))
        (haft--revert buffer)))))

(defun haft--revert (buffer)
  "Read BUFFER again, unless somebody has changed it."
  (with-current-buffer buffer
    (cond
     ((verify-visited-file-modtime buffer))
     ((buffer-modified-p)
      (message "haft: %s was changed on disk; the buffer has changes of yours and is left alone"
               (haft-safe-line (buffer-name))))
     ((not (file-exists-p buffer-file-name))
      (message "haft: %s was deleted; the buffer still has it" (haft-safe-line (buffer-name))))
     ;; The mode stays: local variables that an agent wrote are not obeyed.
     (t (revert-buffer t t t)
        (message "haft: %s was changed and read again" (haft-safe-line (buffer-name)))))))

;;;; Commands

;;;###autoload
(defun haft-connect ()
  "Connect to haft: to the gateway of this machine, or to `haft-url'.
Where no gateway runs on this machine, one is started."
  (interactive)
  (unless (memq 'haft-mode-line global-mode-string)
    (setq global-mode-string (append (or global-mode-string '("")) '(haft-mode-line))))
  (haft-client-start))

;;;###autoload
(defun haft-disconnect ()
  "Leave haft.  What is asked stays open."
  (interactive)
  (haft-client-stop)
  (setq haft-questions nil)
  (run-hooks 'haft-questions-functions))

;;;; What programs call

(defun haft--question-of (tool-call)
  "The open question of TOOL-CALL, an alist.
It names its call by `tool_call_id', or else by `tool' and `params'."
  (let ((id (seq-some (lambda (key) (haft-get tool-call key)) '(tool_call_id toolCallId callId id))))
    (or (if id (haft-question id)
          (seq-find (lambda (card) (and (equal (haft-get card 'tool) (haft-get tool-call 'tool))
                                        (equal (haft-get card 'input) (haft-get tool-call 'params))))
                    haft-questions))
        (user-error "No open question is about this call"))))

;;;###autoload
(defun haft-approve-tool (tool-call)
  "Show the question of TOOL-CALL, an alist with `tool', `params' and `context'."
  (haft-show-question (haft-get (haft--question-of tool-call) 'id) (haft-get tool-call 'context)))

;;;###autoload
(defun haft-preview-tool-effect (tool params)
  "What a call of TOOL with PARAMS that is asked about would change, as a text."
  (let* ((card (haft--question-of `((tool . ,tool) (params . ,params)))) (changes (haft-items (haft-get card 'changes))))
    (if changes
        (mapconcat (lambda (change)
                     (concat (haft-page-change-line change) "\n" (haft-safe (or (haft-get change 'diff) ""))))
                   changes "")
      (haft-safe (or (haft-get card 'description 'preview) "")))))

;;;###autoload
(defun haft-api-approve (tool-call)
  "Say yes to TOOL-CALL."
  (let ((card (haft--question-of tool-call)))
    (haft-approval--give card "approve"
                         `((number . ,(haft-get card 'number)) (digest . ,(haft-get card 'digest))))))

;;;###autoload
(defun haft-api-reject (tool-call &optional message)
  "Say no to TOOL-CALL, with MESSAGE."
  (haft-approval--give (haft--question-of tool-call) "reject" (and message `((message . ,message)))))

;;;###autoload
(defun haft-auto-approve (tool &optional lasting)
  "Let TOOL go on without asking in the workspace of this folder.
That lasts for LASTING, such as 8h, or until it is revoked.  `haft
grants' lists such grants and revokes them."
  (interactive (list (read-string "Tool: ") (haft-approval--read-lasting)))
  (haft-request "POST" "/api/grants"
                (lambda (status value)
                  (message "%s" (or (haft-problem status value)
                                    (format "%s may go on without asking" (haft-safe-line tool)))))
                :body `((tool . ,tool) ,@(and lasting `((for . ,lasting)))
                        ,@(unless haft-url `((workspace . ,(haft-run--folder)))))))

(add-hook 'haft-state-functions #'haft--update-mode-line)
(add-hook 'haft-questions-functions #'haft--update-mode-line)
(add-hook 'haft-event-functions #'haft-file-event)

(provide 'haft)
;;; haft.el ends here
