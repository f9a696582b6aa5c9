;;; haft-log.el --- What agents did, and undo  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; The calls of everybody, newest first.  Each can be looked at, and what it
;; changed can be undone and redone.

;;; Code:

(require 'cl-lib)
(require 'haft-approval)
(require 'haft-client)
(require 'haft-text)
(require 'tabulated-list)

(defcustom haft-log-length 100
  "How many calls `haft-log' lists."
  :type 'natnum
  :group 'haft)

(defconst haft-log--buffer "*haft log*" "The buffer of the log.")
(defconst haft-log--call-buffer "*haft call*" "The buffer of one call.")

(defvar haft-log--calls nil "The calls that are listed.")
(defvar haft-log--inputs (make-hash-table :test #'equal)
  "What calls are about.  The list of calls does not say it, and it never changes.")
(defvar haft-log--asked nil "Whether the list is on its way.")
(defvar haft-log--timer nil "The timer that gets the list again, or nil.")
(defvar-local haft-log--call nil "The call that this buffer is about.")

(defvar haft-log-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'haft-log-show)
    (define-key map "u" #'haft-undo)
    (define-key map "r" #'haft-redo)
    (define-key map "d" #'haft-log-diff)
    (define-key map "k" #'haft-stop-call)
    map)
  "Keys of `haft-log-mode'.")

(define-derived-mode haft-log-mode tabulated-list-mode "haft log"
  "Mode for the list of calls.
\\{haft-log-mode-map}"
  (setq tabulated-list-format [("When" 9 nil) ("Took" 8 nil) ("By" 12 t) ("Status" 10 t) ("What" 0 nil)]
        tabulated-list-padding 1)
  (setq-local bidi-paragraph-direction 'left-to-right
              revert-buffer-function (lambda (&rest _) (haft-log--load)))
  (tabulated-list-init-header))

;;;###autoload
(defun haft-log ()
  "List what was called, newest first."
  (interactive)
  (with-current-buffer (get-buffer-create haft-log--buffer)
    (haft-log-mode)
    (haft-log--draw)
    (haft-log--load)
    (pop-to-buffer (current-buffer)))
  (message "RET shows a call, u undoes it, r redoes it"))

(defun haft-log--load ()
  "Get the list of calls."
  (unless haft-log--asked
    (setq haft-log--asked t)
    (haft-request
     "GET" (format "/api/calls?limit=%d" (min 200 haft-log-length))
     (lambda (status value)
       (setq haft-log--asked nil)
       (let ((problem (haft-problem status value)))
         (if problem (message "haft: %s" problem)
           (setq haft-log--calls (haft-items (haft-get value 'items)))
           (haft-log--draw)
           (haft-log--learn haft-log--calls)))))))

(defun haft-log--learn (calls)
  "Learn what CALLS are about, one after the other."
  (let ((call (seq-find (lambda (call) (not (gethash (haft-get call 'callId) haft-log--inputs))) calls)))
    (when (and call (get-buffer haft-log--buffer))
      (let ((id (haft-get call 'callId)) (rest (cdr (memq call calls))))
        (haft-request "GET" (haft-path "/api/calls/%s" id)
                      (lambda (status value)
                        (when status
                          (haft-remember haft-log--inputs id (haft-subject (haft-get value 'input)))
                          ;; A long list is not written anew for each of them.
                          (when (zerop (mod (length rest) 10)) (haft-log--draw))
                          (haft-log--learn rest))))))))

(defun haft-log--status (call)
  "How CALL stands, in a word."
  (let ((status (or (haft-get call 'status) "running")))
    ;; Somebody gave it another input, and another call went on with that.
    (if (and (equal status "pending") (equal "ended" (haft-get call 'state))) "edited" status)))

(defun haft-log--draw ()
  "Write the list anew, if there is one."
  (when-let ((buffer (get-buffer haft-log--buffer)))
    (with-current-buffer buffer
      (setq tabulated-list-entries
            (mapcar
             (lambda (call)
               (let ((status (haft-log--status call)) (id (haft-get call 'callId)))
                 (list id
                       (vector (haft-ago (haft-get call 'startedAt)) (haft-took (haft-get call 'durationMs))
                               (haft-safe-line (or (haft-get call 'caller) ""))
                               (propertize (haft-safe-line status)
                                           'face (if (member status '("error" "cancelled" "rejected")) 'haft-warning
                                                   'default))
                               (concat (haft-safe-line (haft-get call 'tool)) " " (gethash id haft-log--inputs ""))))))
             haft-log--calls))
      (tabulated-list-print t))))

(defun haft-log-event (name data)
  "Follow the event NAME with DATA."
  (when (get-buffer haft-log--buffer)
    (when (equal name "tool.call")
      (haft-remember haft-log--inputs (haft-get data 'toolCallId) (haft-subject (haft-get data 'args))))
    (when (member name '("tool.call" "tool.completed" "tool.failed" "tool.rejected" "tool.cancelled"
                         "tool.needs_approval" "tool.approved" "tool.interrupted"))
      (haft-log--load-soon))))

(defun haft-log--load-soon ()
  "Get the list again in a moment: many calls may begin and end at once."
  (unless haft-log--timer
    (setq haft-log--timer (run-at-time 0.3 nil (lambda ()
                                                 (setq haft-log--timer nil)
                                                 (if haft-log--asked (haft-log--load-soon) (haft-log--load)))))))

(defun haft-log--id-here ()
  "The call at point, or that of this buffer; nil where there is none."
  (or haft-log--call
      (and (derived-mode-p 'tabulated-list-mode) (tabulated-list-get-id))
      (haft-get haft-page-card 'id)))

(defun haft-log--id ()
  "The call at point, or that of this buffer."
  (or (haft-log--id-here) (user-error "There is no call here")))

;;;; One call

(defvar haft-call-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "u" #'haft-undo)
    (define-key map "r" #'haft-redo)
    (define-key map "d" #'haft-log-diff)
    (define-key map "k" #'haft-stop-call)
    map)
  "Keys of `haft-call-mode'.")

(define-derived-mode haft-call-mode special-mode "haft call"
  "Mode for one call.
\\{haft-call-mode-map}"
  (setq-local bidi-paragraph-direction 'left-to-right word-wrap t
              revert-buffer-function (lambda (&rest _) (haft-show-call haft-log--call))))

(defun haft-log-show ()
  "Show the call at point."
  (interactive)
  (haft-show-call (haft-log--id)))

(defun haft-show-call (id)
  "Show the call ID: what was asked, what it changed, how it ended."
  (haft-request
   "GET" (haft-path "/api/calls/%s" id)
   (lambda (status call)
     (let ((problem (haft-problem status call)))
       (if problem (message "%s" problem)
         (haft-request "GET" (haft-path "/api/calls/%s/changes" id)
                       (lambda (status changes)
                         (haft-log--show-call call (and (eql status 200) (haft-items (haft-get changes 'changes)))))))))))

(defun haft-log--show-call (call changes)
  "Show CALL and its CHANGES."
  (with-current-buffer (get-buffer-create haft-log--call-buffer)
    (haft-call-mode)
    (setq haft-log--call (haft-get call 'callId))
    (let ((inhibit-read-only t) (outcome (haft-get call 'outcome)))
      (erase-buffer)
      (haft-page-heading (format "# %s" (haft-safe-line (haft-get call 'tool))))
      (haft-page-fact "Call" (haft-get call 'callId))
      (haft-page-fact "Status" (haft-safe-line (haft-log--status call)))
      (haft-page-fact "Asked" (format "%s by %s (%s)" (haft-ago (haft-get call 'startedAt))
                                           (haft-safe-line (or (haft-get call 'caller 'name) "somebody"))
                                           (haft-safe-line (format "%s" (haft-get call 'source)))))
      (when (haft-get call 'workspace) (haft-page-fact "In" (haft-safe-line (haft-get call 'workspace))))
      (when (haft-get call 'continuedAs)
        (haft-page-fact "Went on as" (haft-safe-line (haft-get call 'continuedAs))))
      (when (haft-get call 'question 'reason)
        (haft-page-fact "Waits" (haft-safe-line (haft-get call 'question 'reason))))
      (when (haft-get outcome 'approved_by)
        (haft-page-fact "Approved by" (haft-safe-line (haft-get outcome 'approved_by))))
      (when (haft-get outcome 'isolation)
        (haft-page-fact "Isolation" (haft-safe-line (haft-get outcome 'isolation))))
      (insert "\n")
      (haft-page-insert-command call)
      (haft-page-insert-arguments call)
      (when changes
        (haft-page-heading "## Changes")
        (haft-page-insert-changes changes)
        (insert "\n"))
      (haft-insert-outcome outcome)
      (set-buffer-modified-p nil)
      (goto-char (point-min)))
    (pop-to-buffer (current-buffer))))

(defun haft-insert-outcome (outcome)
  "Insert how a call ended, as OUTCOME says."
  (let ((content (haft-get outcome 'result 'content)) (problem (haft-get outcome 'error)))
    (when problem
      (haft-page-insert 'error (haft-safe-line (or (haft-get problem 'code) "")) " "
                             (haft-safe (or (haft-get problem 'message) "")) "\n"))
    (when (haft-get outcome 'user_message)
      (insert (format "“%s”\n" (haft-safe-line (haft-get outcome 'user_message)))))
    (when (and (stringp content) (not (string-empty-p content)))
      (haft-page-heading "## Output")
      (insert (haft-page-barred (string-trim-right content))))))

(defun haft-log-diff ()
  "Show everything that the call at point changed or would change."
  (interactive)
  (let ((id (haft-log--id)))
    (haft-request "GET" (haft-path "/api/calls/%s/changes" id)
                  (lambda (status value)
                    (let ((problem (haft-problem status value)) (changes (haft-items (haft-get value 'changes))))
                      (cond (problem (message "%s" problem))
                            ((null changes) (message "This call changed no files"))
                            (t (haft-show-changes (format "%s" id) changes (or (haft-get value 'output) "") nil))))))))

;;;; Undo, redo, stop

(defun haft-log--turn (id way)
  "Do WAY, undo or redo, to the changes of the call ID.
A person sees them first."
  (haft-request
   "GET" (haft-path "/api/calls/%s/changes" id)
   (lambda (status value)
     (let ((problem (haft-problem status value)) (changes (haft-items (haft-get value 'changes))))
       (cond
        (problem (message "%s" problem))
        ((null changes) (message "This call changed no files"))
        ;; Not inside the process that brought the answer: a question there would hold everything up.
        (t (run-at-time 0 nil #'haft-log--ask-and-turn id way changes)))))))

(defun haft-log--ask-and-turn (id way changes)
  "Ask whether to do WAY to CHANGES of the call ID, and do so."
  (when (y-or-n-p (format "%s %s? " (capitalize way)
                          (truncate-string-to-width
                           (mapconcat (lambda (change) (substring-no-properties (haft-page-change-line change)))
                                      (seq-take changes 3) "; ")
                           200 nil nil "…")))
    (haft-turn-call id way)))

(defun haft-turn-call (id way &optional callback)
  "Do WAY, undo or redo, to the call ID; CALLBACK gets the sentence that is said."
  (haft-request
   "POST" (haft-path (concat "/api/calls/%s/" way) id)
   (lambda (status value)
     (let ((sentence (or (haft-problem status value)
                         (if (eql status 202) (format "The %s waits for an answer" way)
                           (haft-outcome-words way value)))))
       (message "%s" sentence)
       (when callback (funcall callback sentence))))
   :body nil :endless t))

(defun haft-undo ()
  "Undo what the call at point changed."
  (interactive)
  (haft-log--turn (haft-log--id) "undo"))

(defun haft-redo ()
  "Bring back what an undo of the call at point took back."
  (interactive)
  (haft-log--turn (haft-log--id) "redo"))

;;;###autoload
(defun haft-stop-call (&optional id)
  "Stop the call ID: what runs is ended, what waits is waited for no longer.
Without a call at point, choose one of those under way."
  (interactive (list (haft-log--id-here)))
  (if id (haft-log--stop id)
    (haft-request "GET" "/api/calls?limit=200"
                  (lambda (status value)
                    (let ((problem (haft-problem status value))
                          (open (seq-remove (lambda (call) (equal "ended" (haft-get call 'state)))
                                            (haft-items (haft-get value 'items)))))
                      (cond (problem (message "%s" problem))
                            ((null open) (message "No call is under way"))
                            (t (run-at-time 0 nil #'haft-log--choose-and-stop open))))))))

(defun haft-log--choose-and-stop (calls)
  "Let the person choose one of CALLS, and stop it."
  (let ((choices (mapcar (lambda (call)
                           (cons (format "%s %s %s" (haft-safe-line (haft-get call 'tool))
                                         (haft-ago (haft-get call 'startedAt)) (haft-get call 'callId))
                                 (haft-get call 'callId)))
                         calls)))
    (haft-log--stop (cdr (assoc (completing-read "Stop: " choices nil t) choices)))))

(defun haft-log--stop (id)
  "Stop the call ID."
  (haft-request "POST" (haft-path "/api/calls/%s/cancel" id)
                (lambda (status value)
                  (message "%s" (or (haft-problem status value) "The call was stopped")))
                :body nil))

(add-hook 'haft-event-functions #'haft-log-event)

(provide 'haft-log)
;;; haft-log.el ends here
