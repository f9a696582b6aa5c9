;;; haft-run.el --- Run a tool from Emacs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; A tool is chosen by name, its fields are read as its schema says, and what
;; it says is shown as it comes.

;;; Code:

(require 'cl-lib)
(require 'haft-client)
(require 'haft-field)
(require 'haft-log)
(require 'haft-text)

(defvar haft-run--workspaces nil "The folder or name of the workspace that was used last, on another machine.")
(defvar haft-run--running nil "Calls under way, as pairs of run and buffer.")
(defvar haft-run--count 0 "How many runs this Emacs has begun.")
(defvar-local haft-run--has-output nil "Whether output came while the tool was running.")

(define-derived-mode haft-run-mode haft-call-mode "haft run"
  "Mode for a tool that was run from Emacs.
\\{haft-run-mode-map}"
  (setq-local revert-buffer-function #'ignore))

;;;; Where

(defun haft-run--folder ()
  "The workspace of this machine that the current folder belongs to.
It is the nearest folder upward that has a .haft, haft.toml or .git,
else the current one."
  (let ((here (if (file-remote-p default-directory) (expand-file-name "~") default-directory)))
    (directory-file-name
     (file-truename
      (or (locate-dominating-file
           here (lambda (folder)
                  (cl-some (lambda (name) (file-exists-p (expand-file-name name folder))) '(".haft" "haft.toml" ".git"))))
          here)))))

(defun haft-run--with-workspace (callback)
  "Call CALLBACK with the workspace to work in, or nil for that of the key."
  (if (null haft-url) (funcall callback (haft-run--folder))
    (haft-get-all
     "/api/workspaces?limit=200"
     (lambda (problem workspaces)
       (run-at-time
        0 nil
        (lambda ()
          (let ((names (mapcar (lambda (one) (haft-get one 'name)) workspaces)))
            (setq haft-run--workspaces
                  (if (or problem (null names)) ""
                    (completing-read "Workspace (Enter for that of the key): " names nil t nil nil
                                     haft-run--workspaces)))
            (funcall callback (unless (string-empty-p haft-run--workspaces) haft-run--workspaces)))))))))

;;;; Which tool

(defun haft-run--with-tools (workspace callback)
  "Call CALLBACK with the tools that there are in WORKSPACE.
Of this machine's own folders only the program knows all of them: the
gateway lists those that need no workspace."
  (if haft-url
      (haft-get-all "/api/tools?limit=200"
                    (lambda (problem tools)
                      (if problem (message "haft: %s" problem) (funcall callback tools))))
    (haft-run-program
     (list "tools" "--json" "--workspace" workspace)
     (lambda (code said)
       (let ((tools (and (eql code 0) (haft-items (haft--json-line said)))))
         (if tools (funcall callback tools)
           (message "haft tools: %s" (haft-program-problem said))))))))

(defun haft-run--choose (tools)
  "Let the person choose one of TOOLS."
  (let* ((names (mapcar (lambda (tool) (haft-get tool 'name)) tools))
         (width (apply #'max 0 (mapcar #'length names)))
         (find (lambda (name) (seq-find (lambda (tool) (equal name (haft-get tool 'name))) tools)))
         (completion-extra-properties
          (list :annotation-function
                (lambda (name)
                  (let ((tool (funcall find name)))
                    (concat (make-string (- (+ 2 width) (length name)) ?\s)
                            (propertize (format "%-12s" (haft-safe-line (or (haft-get tool 'effect) ""))) 'face 'haft-faint)
                            (truncate-string-to-width (haft-safe-line (or (haft-get tool 'description) "")) 60 nil nil "…")))))))
    (funcall find (completing-read "Run tool: " names nil t))))

;;;###autoload
(defun haft-run-tool (&optional as-json)
  "Choose a tool, fill in its fields, and run it in the workspace of this folder.
With a prefix argument AS-JSON, edit its whole input as JSON instead."
  (interactive "P")
  (unless haft--connection (user-error "Connect first: M-x haft-connect"))
  (haft-run--with-workspace
   (lambda (workspace)
     (haft-run--with-tools
      workspace
      (lambda (tools)
        ;; A question inside a process that brought an answer would hold everything up.
        (run-at-time
         0 nil
         (lambda ()
           (let* ((tool (or (haft-run--choose tools) (user-error "No tool was chosen")))
                  (schema (haft-get tool 'inputSchema)) (name (haft-get tool 'name)))
             (if as-json
                 (haft-edit (format "*haft input: %s*" (haft-safe-line name)) (haft-run--template schema)
                            (lambda (input) (haft-call-tool name input workspace)))
               (haft-call-tool name (haft-read-object schema workspace) workspace))))))))))

(defun haft-run--template (schema)
  "An input with the fields that SCHEMA requires."
  (cl-loop for (name field required) in (haft-field-all schema)
           when required
           collect (cons (intern name)
                         (pcase (haft-get field 'type)
                           ("string" "") ((or "integer" "number") 0) ("boolean" :false) ("array" []) (_ nil)))))

;;;; Running it

(defun haft-call-tool (tool input &optional workspace)
  "Run TOOL with INPUT in WORKSPACE, and show what it says as it comes.
Return the buffer."
  (let* ((run (format "emacs-%d-%d-%d" (emacs-pid) (floor (* 1000 (float-time))) (cl-incf haft-run--count)))
         (buffer (generate-new-buffer (format "*haft run: %s*" (haft-safe-line tool)))))
    (with-current-buffer buffer
      (haft-run-mode)
      (let ((inhibit-read-only t))
        (haft-page-heading (format "# %s %s" (haft-safe-line tool) (haft-subject input)))))
    ;; The events of the call carry the run, so that they are known before the call has an answer.
    (push (cons run buffer) haft-run--running)
    (haft-run--start tool input workspace run buffer)
    (display-buffer buffer)
    buffer))

(defun haft-run--start (tool input workspace run buffer)
  "Start the call of TOOL with INPUT in WORKSPACE as RUN, shown in BUFFER."
  (haft-request
   "POST" (haft-path "/api/tools/%s/calls" tool)
   (lambda (status value)
     (cond
      ((eql status 202)
       (with-current-buffer buffer (setq haft-log--call (haft-get value 'tool_call_id)))
       (haft-run--say buffer 'haft-faint "It waits for an answer.\n"))
      ((eql status 200) (haft-run--ended run value))
      ((and (eql status 404) workspace (null haft-url) (string-search "workspace" (haft-problem status value)))
       (run-at-time 0 nil #'haft-run--use-folder tool input workspace run buffer))
      (t (haft-run--ended run nil (haft-problem status value)))))
   :body `((input . ,input) (wait . 0) (run . ,run) ,@(and workspace `((workspace . ,workspace))))
   :endless t))

(defun haft-run--use-folder (tool input folder run buffer)
  "Let haft be used in FOLDER, where that is wanted, and start the call again.
It is that of TOOL with INPUT as RUN, shown in BUFFER."
  (if (not (y-or-n-p (format "Until now haft was not used in %s.  Use it there? " (haft-safe-line folder))))
      (haft-run--ended run nil "Nothing was run")
    (haft-run-program
     (list "call" "list_directory" "{\"path\": \".\"}" "--json" "--workspace" folder)
     (lambda (code said)
       (if (eql code 0) (haft-run--start tool input folder run buffer)
         (haft-run--ended run nil (haft-program-problem said)))))))

(defun haft-run--say (buffer face text)
  "Add TEXT in FACE to the end of BUFFER."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (let ((inhibit-read-only t) (follows (= (point) (point-max))))
        (save-excursion
          (goto-char (point-max))
          (haft-page-insert face text))
        (set-buffer-modified-p nil)
        (when follows (goto-char (point-max)))
        (dolist (window (get-buffer-window-list buffer nil t))
          (when follows (set-window-point window (point-max))))))))

(defun haft-run--ended (run outcome &optional problem)
  "Show that RUN has ended with OUTCOME, or that it never began because of PROBLEM."
  (when-let ((buffer (alist-get run haft-run--running nil nil #'equal)))
    (setf (alist-get run haft-run--running nil t #'equal) nil)
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (let ((inhibit-read-only t) (changes (haft-items (haft-get outcome 'changes))))
          (when outcome (setq haft-log--call (haft-get outcome 'tool_call_id)))
          (goto-char (point-max))
          (unless (bolp) (insert "\n"))
          (if problem (haft-page-insert 'error problem "\n")
            ;; What came live is not said twice.
            (haft-insert-outcome (if haft-run--has-output (seq-remove (lambda (pair) (eq 'result (car pair))) outcome)
                                   outcome))
            (dolist (change changes) (insert (haft-page-change-line change) "\n"))
            (haft-page-insert 'haft-label (format "%s after %s%s\n"
                                                       (haft-safe-line (or (haft-get outcome 'status) "ended"))
                                                       (haft-took (haft-get outcome 'execution_time_ms))
                                                       (let ((code (haft-get outcome 'result 'metadata 'exit_code)))
                                                         (if (memql code '(nil 0)) "" (format ", exit %d" code)))))
            (when changes (insert (substitute-command-keys "\\<haft-run-mode-map>\\[haft-undo] undoes it\n"))))
          (set-buffer-modified-p nil))))))

(defun haft-run-event (name data)
  "Follow the event NAME with DATA."
  (when-let ((buffer (alist-get (haft-get data 'runId) haft-run--running nil nil #'equal)))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer (setq haft-log--call (haft-get data 'toolCallId))))
    (pcase name
      ("tool.output_appended"
       (with-current-buffer buffer (setq haft-run--has-output t))
       (haft-run--say buffer (and (equal "stderr" (haft-get data 'stream)) 'haft-warning)
                      (haft-safe (or (haft-get data 'chunk) ""))))
      ("tool.progress"
       (haft-run--say buffer 'haft-faint (format "%s%s\n" (if (haft-get data 'progress) (format "%d%% " (haft-get data 'progress)) "")
                                                 (haft-safe-line (or (haft-get data 'message) "")))))
      ((or "tool.completed" "tool.failed" "tool.rejected" "tool.cancelled" "tool.interrupted")
       (haft-run--see-end (haft-get data 'runId) (haft-get data 'toolCallId))))))

(defun haft-run--see-end (run id)
  "Show how the call ID of RUN ended."
  (haft-request "GET" (haft-path "/api/calls/%s" id)
                (lambda (status value)
                  (when (and (eql status 200) (equal "ended" (haft-get value 'state)))
                    (haft-run--ended run (haft-get value 'outcome))))))

(add-hook 'haft-event-functions #'haft-run-event)

(provide 'haft-run)
;;; haft-run.el ends here
