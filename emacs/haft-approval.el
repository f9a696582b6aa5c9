;;; haft-approval.el --- Answer what agents ask  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Open questions wait in a queue.  One of them is shown in the buffer
;; *Agent Approval* with everything that is known of it, and answered with one
;; key.

;;; Code:

(require 'cl-lib)
(require 'diff-mode)
(require 'haft-client)
(require 'haft-field)
(require 'haft-page)
(require 'haft-text)
(require 'seq)
(require 'tabulated-list)

(defcustom haft-pop-up t
  "Whether a new question is shown at once.
It is shown in another window, which is not selected: nothing that you
are typing can answer it."
  :type 'boolean
  :group 'haft)

(defcustom haft-pause 0.5
  "For so many seconds a question that has just come takes no answer.
A key that was meant for the one before does nothing."
  :type 'number
  :group 'haft)

(defconst haft-approval-buffer "*Agent Approval*" "The buffer of the question that is shown.")
(defconst haft-approval--diff-buffer "*haft diff*" "The buffer that shows everything.")
(defconst haft-approval--help-buffer "*haft help*" "The buffer with help.")


;;;; What is shown

(defvar-local haft-approval--since 0 "Since when this question is shown.")
(defvar haft-approval--answering nil "The call whose answer is on its way, or nil.")

;;;; The queue

(defvar haft-questions nil
  "The open questions, oldest first.  Each is an alist, as the gateway tells it.")

(defvar haft-questions-functions nil
  "Functions that are called without arguments when `haft-questions' has changed.")

(defun haft-question (id)
  "The open question of the call ID, or nil."
  (seq-find (lambda (card) (equal id (haft-get card 'id))) haft-questions))

(defun haft-approval--set-questions (cards)
  "Let CARDS be the open questions."
  (setq haft-questions (sort cards (lambda (one other)
                                     (string< (haft-approval--order one) (haft-approval--order other)))))
  (run-hooks 'haft-questions-functions))

(defun haft-approval--order (card)
  "What CARD is sorted by."
  (concat (or (haft-get card 'askedAt) "") (or (haft-get card 'id) "")))

(defun haft-approval--take (card)
  "Put CARD into the queue, and show it if nothing else is shown."
  (let* ((id (haft-get card 'id)) (before (haft-question id)))
    (haft-approval--set-questions (cons card (remove before (copy-sequence haft-questions))))
    (cond
     ((not (equal id (haft-approval--shown)))
      (unless before (haft-approval--announce card)))
     ((not (equal (haft-get card 'digest) (haft-get before 'digest)))
      (haft-approval--show card "What is asked has changed; look again")))))

(defun haft-approval--drop (id)
  "Take the question of the call ID out of the queue."
  (when-let ((card (haft-question id)))
    (haft-approval--set-questions (remove card (copy-sequence haft-questions)))))

(defun haft-approval--announce (card)
  "Say that CARD is asked, and show it where that is wanted."
  (message "haft: %s asks: %s %s" (haft-safe-line (or (haft-get card 'askedBy 'name) "somebody"))
           (haft-safe-line (haft-get card 'tool))
           (truncate-string-to-width (haft-subject (haft-get card 'input)) 60 nil nil "…"))
  (when (and haft-pop-up (not (haft-approval--shown)))
    (haft-approval--show card)
    (display-buffer haft-approval-buffer '((display-buffer-reuse-window display-buffer-pop-up-window)
                                           (inhibit-same-window . t) (window-height . 0.65)))))

(defun haft-approval--shown ()
  "The call whose question is shown and not answered yet, or nil."
  (when-let ((buffer (get-buffer haft-approval-buffer)))
    (with-current-buffer buffer (haft-get haft-page-card 'id))))

(defun haft-approval-load ()
  "Get all open questions."
  (haft-get-all
   "/api/approvals?limit=200"
   (lambda (problem cards)
     (if problem (message "haft: %s" problem)
       (let ((gone (seq-remove (lambda (card) (seq-find (lambda (other) (equal (haft-get card 'id) (haft-get other 'id)))
                                                        cards))
                               haft-questions)))
         ;; The oldest is shown first.
         (dolist (card (reverse cards)) (haft-approval--take card))
         (dolist (card gone) (haft-approval-refresh (haft-get card 'id))))))))

(defun haft-approval-refresh (id)
  "Look how the question of the call ID stands now."
  (haft-request
   "GET" (haft-path "/api/approvals/%s" id)
   (lambda (status card)
     (cond
      ;; Whose answer counts is told by the reply to ours.
      ((equal id haft-approval--answering))
      ((and (eql status 200) (null (haft-get card 'answer))) (haft-approval--take card))
      ((eql status 200) (haft-approval--answered-elsewhere id card))
      ((eql status 404) (haft-approval--leave id))))))

(defun haft-approval--answered-elsewhere (id decided)
  "Take the question of the call ID away; DECIDED says who answered what."
  (let ((card (haft-question id)) (was-shown (equal id (haft-approval--shown))))
    (haft-approval--drop id)
    (when (and card was-shown)
      (let ((sentence (haft-approval--already card decided)))
        (haft-approval--next)
        (message "%s" sentence)))))

(defun haft-approval--already (card decided)
  "That CARD was answered before, as DECIDED says."
  (let ((answer (haft-get decided 'answer)) (by (haft-get decided 'by 'name)) (at (haft-clock (haft-get decided 'at)))
        (tool (haft-safe-line (or (haft-get card 'tool) "The call"))) (words (haft-get decided 'message)))
    (if (equal answer "expire") (format "%s expired at %s: nobody answered in time" tool at)
      (format "%s was already answered: %s (by %s at %s)" tool
              (pcase answer
                ("approve" "yes") ("always" "yes, always") ("edit" "yes to an edited input")
                ("fill" "filled in") ("result" "the result was given") ("failed" "it failed")
                ("cancel" "cancelled") ("timed_out" "it timed out")
                ("reject" (if words (format "no, “%s”" (haft-safe-line words)) "no"))
                (_ (haft-safe-line (format "%s" answer))))
              (haft-safe-line (or by "somebody")) at))))

(defconst haft-approval--asking '("tool.needs_approval" "tool.asks" "tool.pending")
  "Events after which a call may ask something.")

(defun haft-approval-event (name data)
  "Follow the event NAME with DATA."
  (let ((id (haft-get data 'toolCallId)))
    (cond
     ((equal name "resync") (haft-approval-load))
     ((null id))
     ((member name haft-approval--asking) (haft-approval-refresh id))
     ((and (haft-question id)
           (member name '("tool.approved" "tool.rejected" "tool.answered" "tool.completed" "tool.failed"
                          "tool.cancelled" "tool.interrupted")))
      (haft-approval-refresh id)))))

;;;; The page

(defvar haft-approval-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "y" #'haft-approve)
    (define-key map "n" #'haft-reject)
    (define-key map "a" #'haft-always)
    (define-key map "e" #'haft-edit-input)
    (define-key map "d" #'haft-show-diff)
    (define-key map "m" #'haft-mark)
    (define-key map "u" #'haft-unmark)
    (define-key map "?" #'haft-approval-help)
    (define-key map "q" #'haft-later)
    map)
  "Keys of `haft-approval-mode'.")

(define-derived-mode haft-approval-mode special-mode "haft"
  "Mode for a question of an agent.
\\{haft-approval-mode-map}"
  (setq-local bidi-paragraph-direction 'left-to-right
              truncate-lines nil
              word-wrap t
              revert-buffer-function (lambda (&rest _) (when-let ((id (haft-approval--shown)))
                                                         (haft-approval-refresh id)))))

(defun haft-approval--show (card &optional sentence)
  "Show CARD in its buffer, and say SENTENCE."
  (with-current-buffer (get-buffer-create haft-approval-buffer)
    (unless (derived-mode-p 'haft-approval-mode) (haft-approval-mode))
    (let ((is-other (not (and (equal (haft-get card 'id) (haft-get haft-page-card 'id))
                              (equal (haft-get card 'digest) (haft-get haft-page-card 'digest))))))
      (setq haft-page-card card)
      (when is-other
        (setq haft-page-edited nil haft-page-marked nil haft-approval--since (float-time)))
      (haft-approval--draw is-other))
    (haft-approval--learn-of-tool card))
  (when sentence (message "%s" sentence)))

(defun haft-approval--learn-of-tool (card)
  "Learn whether the tool of CARD asks every time: then no yes is remembered."
  (when (and (equal "approval" (haft-get card 'kind)) (null (assq 'tool-asks card)))
    (haft-request
     "GET" (haft-path "/api/tools/%s" (haft-get card 'tool))
     (lambda (status tool)
       (when (eql status 200)
         (nconc card (list (cons 'tool-asks (haft-get tool 'asks))
                           (cons 'tool-description (haft-get tool 'description))))
         (with-current-buffer (get-buffer-create haft-approval-buffer)
           (when (eq card haft-page-card) (haft-approval--draw nil))))))))

(defun haft-approval--draw (from-start)
  "Write the page of the question anew; FROM-START puts point at its beginning."
  (let ((inhibit-read-only t) (card haft-page-card) (line (line-number-at-pos)) (column (current-column))
        (windows (get-buffer-window-list nil nil t)))
    (erase-buffer)
    (setq header-line-format (and card (list (haft-page-prompt card) '(:eval (haft-approval--others)))))
    (if (null card) (insert "No question is open.\n")
      (haft-page-insert-head card)
      (pcase (haft-get card 'kind)
        ("form" (haft-page-insert-form card))
        ("result" (haft-page-insert-result card))
        (_ (haft-page-insert-approval card)))
      (haft-page-insert-actions card))
    (set-buffer-modified-p nil)
    (goto-char (point-min))
    (unless from-start (forward-line (1- line)) (move-to-column column))
    (dolist (window windows)
      (set-window-point window (point))
      (when from-start (set-window-start window (point-min))))))

(defun haft-approval--others ()
  "How many other questions wait, for the line above the page."
  (let ((others (length (remove (haft-question (haft-get haft-page-card 'id)) haft-questions))))
    (if (zerop others) "" (format "   (%s: M-x haft-approvals)" (haft-count others "more question")))))

;;;; Answers

(defun haft-approval--current (&rest kinds)
  "The question that is shown, if it can be answered now.
It must be of one of KINDS, where there are any."
  (let ((card haft-page-card))
    (cond
     ((null card) (user-error "No question is shown here"))
     ((equal (haft-get card 'id) haft-approval--answering) (user-error "An answer is on its way"))
     ((and kinds (not (member (haft-get card 'kind) kinds))) (user-error "That does not fit this question; ? helps"))
     ((< (- (float-time) haft-approval--since) haft-pause)
      (discard-input)
      (user-error "This question has just come; look at it first"))
     (t card))))

(defun haft-approval--sure (card)
  "Let the person type yes if CARD is dangerous."
  (when (haft-page-dangerous-p card)
    (unless (equal "yes" (string-trim (read-string "This deletes something, or touches what is flagged. Type yes: ")))
      (user-error "Nothing was answered"))))

(defun haft-approval--give (card way body)
  "Answer CARD by WAY with BODY.
The page stays until the gateway says that the answer counts."
  (let ((id (haft-get card 'id)))
    (setq haft-approval--answering id)
    (haft-request
     "POST" (haft-path (concat "/api/approvals/%s/" way) id)
     (lambda (status value)
       (setq haft-approval--answering nil)
       (let ((sentence (haft-approval--after card status value)))
         (message "%s" sentence)))
     :body body)))

(defun haft-approval--after (card status value)
  "Go on after CARD was answered, with STATUS and VALUE; return what to say."
  (let ((id (haft-get card 'id)) (problem (haft-problem status value)))
    (cond
     ((and (eql status 200) (eq :false (alist-get 'answered value)))
      (format "Your yes counts; %s more needed" (or (haft-get value 'needed) "others are")))
     ((eql status 200)
      (haft-approval--leave id)
      (haft-outcome-words (haft-get card 'tool) (haft-get value 'outcome)))
     ((haft-get value 'decided)
      (haft-approval--leave id)
      (haft-approval--already card (haft-get value 'decided)))
     ((haft-get value 'card)
      (haft-approval--take (haft-get value 'card))
      problem)
     ((eql status 404)
      (haft-approval--leave id)
      "This question is no longer there")
     (t (format "Not answered: %s" problem)))))

(defun haft-outcome-words (tool outcome)
  "How the call of TOOL ended, as OUTCOME says."
  (let ((status (haft-get outcome 'status)) (tool (haft-safe-line tool)))
    (cond ((null outcome) (format "%s: answered" tool))
          ((and (haft-get outcome 'error 'message) (not (equal status "rejected")))
           (format "%s: %s" tool (haft-safe-line (haft-get outcome 'error 'message))))
          (t (format "%s: %s" tool (haft-safe-line (or status "answered")))))))

(defun haft-approval--leave (id)
  "Take the question of the call ID away, and show the next one."
  (let ((was-shown (equal id (haft-approval--shown))))
    (haft-approval--drop id)
    (when was-shown (haft-approval--next))))

(defun haft-approval--next ()
  "Show the oldest open question, or none."
  (with-current-buffer (get-buffer-create haft-approval-buffer)
    (if haft-questions (haft-approval--show (car haft-questions))
      (setq haft-page-card nil haft-page-edited nil haft-page-marked nil)
      (haft-approval--draw t)
      (dolist (window (get-buffer-window-list nil nil t)) (quit-window nil window)))))

(defun haft-approve ()
  "Say yes to what is shown: to all of it, or to the paths that are marked.
A form is filled in, and a result is given."
  (interactive nil haft-approval-mode)
  (let ((card (haft-approval--current)))
    (pcase (haft-get card 'kind)
      ("form" (haft-approval--fill-form card))
      ("result" (haft-edit "*haft result*" nil
                           (lambda (value) (haft-approval--give card "fill" `((values . ,value))))))
      (_ (let ((yes (haft-approval--yes card)))
           (haft-approval--sure card)
           (haft-approval--give card "approve" yes))))))

(defun haft-approval--yes (card)
  "The yes to CARD as it is shown: with another input, or to some paths."
  `((number . ,(haft-get card 'number))
    ,@(if haft-page-edited `((input . ,(cdr haft-page-edited)))
        `((digest . ,(haft-get card 'digest))
          ,@(and haft-page-marked `((paths . ,(vconcat haft-page-marked))))))))

(defun haft-approval--fill-form (card)
  "Fill the form of CARD in."
  (let* ((schema (haft-get card 'form 'schema))
         (values (delq nil (mapcar (lambda (field) (haft-approval--fill-field field)) (haft-field-all schema)))))
    (haft-approval--give card "fill" `((values . ,values)))))

(defun haft-approval--fill-field (field)
  "Read the value of FIELD; nil where it is left out."
  (cl-destructuring-bind (name schema required) field
    (when (or required
              (y-or-n-p (format "Fill in the optional field %s? " (haft-safe-line name))))
      (cons (intern name) (haft-read-field name schema)))))

(defun haft-reject ()
  "Say no to what is shown; whoever asked reads why."
  (interactive nil haft-approval-mode)
  ;; While somebody types, another question may take the place of this one.
  (let* ((card (haft-approval--current)) (message (string-trim (read-string "Why? (Enter to give no reason) "))))
    (haft-approval--give card "reject" (unless (string-empty-p message) `((message . ,message))))))

(defun haft-always ()
  "Say yes to what is shown, and remember it."
  (interactive nil haft-approval-mode)
  (let* ((card (haft-approval--current "approval")) (why (haft-page-withheld card)) (offers (haft-page-offers card)))
    (when why (user-error "A yes cannot be remembered: %s" why))
    (when haft-page-edited (user-error "An edited input is approved once; y does so"))
    (let* ((kind (cdr (assoc (completing-read (format-prompt "How far" (caar offers)) offers nil t nil nil (caar offers)) offers)))
           (lasting (haft-approval--read-lasting))
           (uses (haft-field--until-it-fits
                  "How often? (Enter for no limit) " ""
                  (lambda (text) (if (string-empty-p text) nil
                                   (haft-field--number '((type . "integer") (minimum . 1)) text))))))
      (haft-approval--sure card)
      (haft-approval--give card "approve"
                           `((number . ,(haft-get card 'number)) (digest . ,(haft-get card 'digest))
                             (always . ((kind . ,kind) ,@(and lasting `((for . ,lasting))) ,@(and uses `((uses . ,uses))))))))))

(defun haft-approval--read-lasting ()
  "Read a length of time, such as 8h; nil for one without end."
  (haft-field--until-it-fits
   "How long? (30m, 8h, 7d; Enter for until it is revoked) " ""
   (lambda (text)
     (cond ((string-empty-p text) nil)
           ((string-match-p "\\`[1-9][0-9]*[smhd]\\'" text) text)
           (t (error "Such as 30m, 8h or 7d"))))))

(defun haft-edit-input ()
  "Give another input; what it would do is shown before it is approved."
  (interactive nil haft-approval-mode)
  (let ((card (haft-approval--current "approval")))
    (unless (haft-page-own-p card) (user-error "What an earlier call has changed cannot be edited"))
    (if (not (haft-get card 'inputCut))
        (haft-approval--edit card (if haft-page-edited (cdr haft-page-edited) (haft-get card 'input)))
      (haft-request "GET" (haft-path "/api/calls/%s" (haft-get card 'id))
                    (lambda (status value)
                      (let ((problem (haft-problem status value)))
                        (if problem (message "%s" problem)
                          (haft-approval--edit card (haft-get value 'input)))))))))

(defun haft-approval--edit (card input)
  "Let the person edit INPUT of CARD."
  (haft-edit "*haft input*" input (lambda (input) (haft-approval--preview card input))))

(defun haft-approval--preview (card input)
  "Show what CARD would do with INPUT.  Nothing is answered yet."
  (unless (haft-object-p input) (user-error "An input is a JSON object"))
  (haft-request
   "POST" (haft-path "/api/approvals/%s/preview" (haft-get card 'id))
   (lambda (status value)
     (let ((problem (haft-problem status value)))
       (cond
        ((haft-get value 'decided) (haft-approval--leave (haft-get card 'id))
         (message "%s" (haft-approval--already card (haft-get value 'decided))))
        ;; What was typed is not lost.
        (problem (haft-approval--edit card input) (message "%s" problem))
        (t
         (haft-approval--show value)
         (with-current-buffer haft-approval-buffer
           (setq haft-page-edited (cons 'input input))
           (haft-approval--draw t))
         (pop-to-buffer haft-approval-buffer)
         (message "y does this instead; e edits again; q goes back")))))
   :body `((input . ,input))))

(defun haft-later ()
  "Leave the question open, or go back from an edited input to what was asked."
  (interactive nil haft-approval-mode)
  (let ((open (and haft-page-edited (haft-question (haft-get haft-page-card 'id)))))
    (if open (haft-approval--show open "As it was asked")
      (when haft-page-card (message "It stays open; M-x haft-approvals lists it"))
      (setq haft-page-card nil haft-page-edited nil)
      (quit-window))))

(defun haft-approval--mark (mark)
  "Mark the path at point if MARK, else unmark it."
  (let ((path (get-text-property (point) 'haft-path)))
    (cond
     ((or haft-page-edited (not (equal "approval" (haft-get haft-page-card 'kind))))
      (user-error "There is nothing to mark here"))
     ((null path) (user-error "Put point on a path under Preview of Changes"))
     (t (setq haft-page-marked
              (if mark (cons path (remove path haft-page-marked)) (remove path haft-page-marked)))
        (haft-approval--draw nil)
        (let ((next (point)))
          (while (and next (equal path (get-text-property next 'haft-path)))
            (setq next (next-single-property-change next 'haft-path)))
          (when (and next (get-text-property next 'haft-path)) (goto-char next)))))))

(defun haft-mark ()
  "Mark the path at point: a yes then commits only what is marked."
  (interactive nil haft-approval-mode)
  (haft-approval--mark t))

(defun haft-unmark ()
  "Take the mark from the path at point."
  (interactive nil haft-approval-mode)
  (haft-approval--mark nil))

;;;; Everything, and help

(define-derived-mode haft-diff-mode diff-mode "haft diff"
  "Mode for everything that a call would change or has changed."
  (setq-local diff-font-lock-syntax nil diff-refine nil bidi-paragraph-direction 'left-to-right
              buffer-read-only t)
  (use-local-map (make-composed-keymap (list special-mode-map) (current-local-map))))

(defun haft-show-changes (about changes said folder)
  "Show everything there is: ABOUT, CHANGES, and what was SAID.
FOLDER is where they are."
  (let ((buffer (get-buffer-create haft-approval--diff-buffer)))
    (with-current-buffer buffer
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert about "\n")
        (dolist (change changes)
          (insert (haft-page-change-line change) "\n")
          (when-let ((text (or (haft-get change 'patch) (haft-get change 'diff))))
            (insert (haft-safe text))
            (unless (bolp) (insert "\n"))))
        (unless (string-empty-p said) (insert "\nOutput:\n" (haft-page-barred said)))
        (set-buffer-modified-p nil))
      (haft-diff-mode)
      (when (and folder (not (file-remote-p folder)) (file-directory-p folder))
        (setq default-directory (file-name-as-directory folder)))
      (goto-char (point-min)))
    (pop-to-buffer buffer)))

(defun haft-show-diff ()
  "Show everything of the question: whole diffs, all output, all arguments."
  (interactive nil haft-approval-mode)
  (let ((card (or haft-page-card (user-error "No question is shown here"))))
    (if (and (haft-get card 'inputCut) (not haft-page-edited))
        (haft-request "GET" (haft-path "/api/calls/%s" (haft-get card 'id))
                      (lambda (status value)
                        (let ((problem (haft-problem status value)))
                          (if problem (message "%s" problem)
                            (haft-approval--show-all card (haft-get value 'input))))))
      (haft-approval--show-all card (haft-get card 'input)))))

(defun haft-approval--show-all (card input)
  "Show everything of CARD, whose whole input is INPUT."
  (haft-show-changes
   (concat (haft-safe-line (haft-get card 'tool)) "\n" (haft-json-pretty input) "\n"
           (let ((preview (haft-get card 'description 'preview))) (if (stringp preview) (haft-safe preview) "")))
   (haft-items (haft-get card 'changes)) (string-trim-right (haft-page-said (haft-get card 'output)))
   (haft-get card 'workspace)))

(defun haft-approval-help ()
  "Say what the tool does and what each key means; the question stays open."
  (interactive nil haft-approval-mode)
  (let ((card (or haft-page-card (user-error "No question is shown here"))))
    (haft-show-tool-help (haft-get card 'tool)
                         (mapconcat (lambda (action) (format "  %s  %s\n" (car action) (cdr action)))
                                    (haft-page-actions card) ""))))

;;;###autoload
(defun haft-show-tool-help (tool &optional keys)
  "Show what TOOL does, and KEYS, a text."
  (interactive (list (read-string "Tool: ")))
  (haft-request
   "GET" (haft-path "/api/tools/%s" tool)
   (lambda (status value)
     (with-help-window haft-approval--help-buffer
       (princ (format "%s: %s\n\n" (haft-safe-line tool)
                      (if (eql status 200) (haft-safe (or (haft-get value 'description) ""))
                        (haft-problem status value))))
       (when keys (princ (concat "Keys:\n" keys "\n")))
       (princ "Arguments:\n")
       (dolist (field (haft-field-all (haft-get value 'inputSchema)))
         (cl-destructuring-bind (name schema required) field
           (princ (format "  %s (%s%s) %s\n" (haft-safe-line name) (haft-field-kind schema)
                          (if required "" ", optional")
                          (haft-safe-line (or (haft-get schema 'description) ""))))))))))

;;;; The list

(defvar haft-approvals-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'haft-approvals-open)
    map)
  "Keys of `haft-approvals-mode'.")

(define-derived-mode haft-approvals-mode tabulated-list-mode "haft approvals"
  "Mode for the list of open questions.
\\{haft-approvals-mode-map}"
  (setq tabulated-list-format [("Asked" 9 nil) ("By" 12 t) ("Kind" 9 t) ("Level" 12 t) ("What" 0 nil)]
        tabulated-list-padding 1)
  (setq-local bidi-paragraph-direction 'left-to-right
              revert-buffer-function (lambda (&rest _) (haft-approval-load) (haft-approvals--draw)))
  (tabulated-list-init-header))

(defun haft-approvals--draw ()
  "Write the list anew, if there is one."
  (when-let ((buffer (get-buffer "*haft approvals*")))
    (with-current-buffer buffer
      (setq tabulated-list-entries
            (mapcar (lambda (card)
                      (list (haft-get card 'id)
                            (vector (haft-ago (haft-get card 'askedAt))
                                    (haft-safe-line (or (haft-get card 'askedBy 'name) ""))
                                    (haft-safe-line (or (haft-get card 'kind) ""))
                                    (propertize (haft-safe-line (or (haft-get card 'effect) ""))
                                                'face (if (haft-page-dangerous-p card) 'haft-warning 'default))
                                    (concat (haft-safe-line (haft-get card 'tool)) " "
                                            (haft-subject (haft-get card 'input))))))
                    haft-questions))
      (tabulated-list-print t))))

;;;###autoload
(defun haft-approvals ()
  "List the questions that are open."
  (interactive)
  (with-current-buffer (get-buffer-create "*haft approvals*")
    (haft-approvals-mode)
    (haft-approvals--draw)
    (haft-approval-load)
    (pop-to-buffer (current-buffer)))
  (message (if haft-questions "RET shows a question" "No question is open")))

(defun haft-approvals-open ()
  "Show the question at point."
  (interactive nil haft-approvals-mode)
  (haft-show-question (or (tabulated-list-get-id) (user-error "No question is here"))))

(defun haft-show-question (id &optional context)
  "Show the question of the call ID, and go there.
CONTEXT is what the agent says of it, where it has said so elsewhere."
  (let ((card (or (haft-question id) (user-error "This question is no longer open"))))
    (haft-approval--show (if (stringp context) (cons (cons 'context context) card) card)))
  (pop-to-buffer haft-approval-buffer))

;;;###autoload
(defun haft-next-question ()
  "Show the oldest open question, and go there."
  (interactive)
  (if haft-questions
      (haft-show-question (or (haft-approval--shown) (haft-get (car haft-questions) 'id)))
    (message "No question is open")))

(add-hook 'haft-questions-functions #'haft-approvals--draw)
(add-hook 'haft-event-functions #'haft-approval-event)
(add-hook 'haft-connected-functions #'haft-approval-load)

(provide 'haft-approval)
;;; haft-approval.el ends here
