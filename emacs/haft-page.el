;;; haft-page.el --- What a question looks like  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Everything that is known of a question, in the words of the terminal.  The
;; page reads as Markdown, but is not given to `markdown-mode': what agents
;; write must not be able to hide a part of it.

;;; Code:

(require 'cl-lib)
(require 'diff-mode)
(require 'haft-field)
(require 'haft-text)
(require 'seq)

(defconst haft-page-lines 120 "How many lines of diffs a page shows.")
(defconst haft-page-lines-each 60 "How many lines of one diff a page shows.")
(defconst haft-page-paths 200 "How many paths a page names.")
(defconst haft-page-text 400 "How many characters of each argument a page shows.")

(defvar-local haft-page-card nil "The question that is shown.")
(defvar-local haft-page-edited nil "The input in the place of the one that was asked about, if there is one.")
(defvar-local haft-page-marked nil "The paths that are marked.")

;;;; What a question is

(defun haft-page-dangerous-p (card)
  "Whether a yes to CARD deletes something, or touches what is flagged."
  (equal "destructive" (haft-get card 'effect)))

(defun haft-page-purpose (card)
  "What a yes to CARD does: `commit', `undo', `redo' or `act'."
  (let ((states (mapcar (lambda (change) (haft-get change 'state)) (haft-items (haft-get card 'changes)))))
    (cond ((not (assq 'changes card)) 'act)
          ((member "undone" states) 'redo)
          ((member "committed" states) 'undo)
          (t 'commit))))

(defun haft-page-own-p (card)
  "Whether CARD asks about the call's own work, and not about an earlier call."
  (not (member (haft-get card 'tool) '("undo_call" "commit_call" "discard_call"))))

(defconst haft-page-flags
  '(("haft_files" . "steers haft itself") ("git_hook" . "is a git hook that would run")
    ("git_config_command" . "names a command that git would run") ("link_outside" . "leads out of the workspace")
    ("set_uid" . "would run with another user's rights") ("sensitive_name" . "usually holds secrets")
    ("runs_by_itself" . "is run or obeyed by other programs")
    ("ignore_rules" . "decides what search and version control see") ("inside_git" . "lies inside a git folder"))
  "Why to look twice at a change, in words that follow its path.")

(defun haft-page-flag-words (change)
  "Why to look twice at CHANGE."
  (mapcar (lambda (flag) (or (cdr (assoc flag haft-page-flags)) (haft-safe-line flag)))
          (haft-items (haft-get change 'flags))))

(defun haft-page-unseen-p (change)
  "Whether CHANGE has content that cannot be shown."
  (and (member (haft-get change 'kind) '("created" "changed" "link"))
       (not (haft-true change 'directory)) (> (or (haft-get change 'size) 0) 0)
       (not (haft-get change 'diff)) (not (haft-get change 'summary))))

(defun haft-page-withheld (card)
  "Why a yes to CARD cannot be remembered; nil if it can."
  (let* ((changes (haft-items (haft-get card 'changes)))
         (flagged (seq-find #'haft-page-flag-words changes))
         (unseen (and (not (seq-find (lambda (change) (haft-get change 'summary)) changes))
                      (seq-find #'haft-page-unseen-p changes))))
    (cond
     ((not (equal "approval" (haft-get card 'kind))) "it is not a question for a yes")
     ((not (haft-page-own-p card)) "it is about an earlier call")
     ((haft-get card 'description 'lasting 'no 'why))
     ((equal "always" (haft-get card 'tool-asks))
      (format "`%s' asks every time" (haft-safe-line (haft-get card 'tool))))
     (flagged (format "`%s' %s, so it asks every time" (haft-safe-line (haft-get flagged 'path))
                      (car (haft-page-flag-words flagged))))
     (unseen (format "the content of `%s' cannot be shown whole" (haft-safe-line (haft-get unseen 'path)))))))

(defun haft-page-offers (card)
  "How far a remembered yes to CARD may reach, as pairs of words and kind."
  (let ((call '("this very call" . "call")) (reach (haft-get card 'description 'reach)))
    (cond ((assq 'changes card)
           (list call '("the same tool in this folder" . "folder") '("the same tool on any path" . "bounds")))
          ((and reach (not (haft-true reach 'sends)))
           (list call (cons (format "the same tool, from %s" (haft-safe-line (haft-get reach 'host))) "bounds")))
          (t (list call)))))

;;;; The page

(defun haft-page-insert (face &rest parts)
  "Insert PARTS in FACE."
  (insert (propertize (apply #'concat parts) 'face face)))

(defun haft-page-heading (text)
  "Insert TEXT as a heading."
  (haft-page-insert 'haft-heading text "\n\n"))

(defun haft-page-fact (label value &optional face)
  "Insert LABEL and VALUE, in FACE, on a line."
  (haft-page-insert 'haft-label "**" label ":** ")
  (haft-page-insert face value "\n"))

(defun haft-page-insert-head (card)
  "Insert what is asked by whom: the first part of the page of CARD."
  (let* ((input (haft-get card 'input)) (path (haft-get input 'path)) (words (or (haft-get card 'context) (haft-get input 'description)))
         (nearly (haft-get card 'nearly)))
    (haft-page-heading (pcase (haft-get card 'kind)
                              ("form" "# A Tool Asks You")
                              ("result" "# A Call Waits for a Result")
                              (_ (if haft-page-edited "# Tool Approval Request, with your input"
                                   "# Tool Approval Request"))))
    (haft-page-fact "Tool" (haft-safe-line (haft-get card 'tool)))
    (when (stringp path) (haft-page-fact "File" (haft-safe-line path)))
    (haft-page-fact "Context" (if (stringp words) (format "the agent says: “%s”" (haft-safe-line words))
                                     "none given")
                         (if (stringp words) 'haft-quote 'haft-faint))
    (haft-page-fact "Level" (concat (haft-safe-line (or (haft-get card 'effect) "unknown"))
                                         (if (haft-page-dangerous-p card) ": a yes has to be typed" ""))
                         (and (haft-page-dangerous-p card) 'haft-warning))
    ;; The reason is that of the first input.
    (unless haft-page-edited
      (haft-page-fact "Why asked" (haft-safe-line (or (haft-get card 'reason) ""))))
    (when nearly (haft-page-insert 'haft-faint (haft-safe-line nearly) "\n"))
    (haft-page-fact "Asked" (format "%s by %s%s" (haft-ago (haft-get card 'askedAt))
                                         (haft-safe-line (or (haft-get card 'askedBy 'name) "somebody"))
                                         (if (haft-get card 'workspace)
                                             (format " in %s" (haft-safe-line (haft-get card 'workspace)))
                                           "")))
    (insert "\n")))

(defun haft-page-command (input)
  "The field of INPUT that is run as it is; nil where there is none."
  (seq-find (lambda (name) (stringp (haft-get input name))) '(command code)))

(defun haft-page-insert-command (card)
  "Insert the command that CARD runs, if it runs one."
  (let* ((input (haft-get card 'input)) (command (haft-page-command input)))
    (when command
      (dolist (line (split-string (haft-safe-command (haft-get input command)) "\n"))
        (haft-page-insert 'haft-label "  $ " line "\n"))
      (insert "\n"))))

(defun haft-page-insert-arguments (card)
  "Insert the input of CARD, apart from what stands elsewhere on the page."
  (let* ((input (haft-get card 'input)) (command (haft-page-command input))
         (beside (seq-remove (lambda (pair) (memq (car pair) (list command 'description))) input)))
    (when (or beside (null command))
      (haft-page-heading "## Arguments")
      (insert (haft-json-pretty beside haft-page-text) "\n")
      (when (haft-get card 'inputCut)
        (haft-page-insert 'haft-warning "The input is long and shortened here; d shows all of it\n"))
      (insert "\n"))
    (when (string-search "[redacted]" (haft-json-text input))
      (haft-page-insert 'haft-warning
                             (format "[redacted] hides what looks like a secret; `haft changes %s --all' shows it\n\n"
                                     (haft-get card 'id))))))

(defun haft-page-insert-approval (card)
  "Insert what a yes to CARD would do."
  (haft-page-insert-command card)
  (haft-page-heading "## Preview of Changes")
  (let ((changes (haft-items (haft-get card 'changes))))
    (cond
     ((not (assq 'changes card)) (haft-page-insert-description card))
     ((null changes) (insert "It changed no files.\n\n"))
     (t (haft-page-insert-changes changes)
        (insert "\n"))))
  (when (assq 'changes card) (haft-page-insert-output card))
  (haft-page-insert 'haft-label (haft-page-covered card) "\n\n")
  (haft-page-insert-arguments card))

(defun haft-page-insert-description (card)
  "Insert how CARD is described: it can only be described."
  (let* ((description (haft-get card 'description)) (preview (haft-get description 'preview))
         (isolation (haft-get description 'isolation)))
    (when (stringp preview) (insert (haft-safe preview) "\n"))
    (when isolation
      (insert (format "It would run in a sandbox (isolation: %s).\n" (haft-safe-line isolation))))
    (haft-page-insert
     'haft-warning
     (cond ((and isolation (haft-true description 'runs_aside))
            "It has not run yet, so its changes cannot be shown. Only changes of files can be undone.")
           (isolation "It has not run yet, so its changes cannot be shown. What it does cannot be undone.")
           ((haft-true description 'runs_aside) "This is all that can be shown before. Only files can be undone.")
           (t "This is all that can be shown before. It cannot be undone."))
     "\n\n")))

(defun haft-page-covered (card)
  "What a yes to CARD does, in a sentence."
  (let ((changes (haft-items (haft-get card 'changes))) (marked (length haft-page-marked))
        (ran (haft-page-exit-code card)))
    (pcase (haft-page-purpose card)
      ('undo "A yes undoes exactly this. `haft redo' brings it back.")
      ('redo "A yes brings exactly this back. It can be undone again.")
      ('act (if (haft-get card 'description 'isolation)
                "A yes runs it, and commits what it changes. Flagged paths stay staged."
              "A yes does exactly this."))
      (_ (cond
          ((null changes) "A yes gives its output to the caller.")
          ((> marked 0) (format "A yes commits only the %s. It can be undone later." (haft-count marked "marked path")))
          (ran (format "A yes commits %s. The command does not run again. It can be undone later."
                       (if (cdr changes) (format "these %s" (haft-count (length changes) "path")) "this path")))
          (t "A yes commits exactly this. It can be undone later."))))))

;;;;; Changes

(defun haft-page-change-line (change)
  "CHANGE on one line."
  (let* ((kind (haft-get change 'kind)) (summary (haft-get change 'summary)) (from (haft-get change 'from))
         (added (or (haft-get change 'added) 0)) (removed (or (haft-get change 'removed) 0))
         (word (or (cdr (assoc kind '(("created" . "create") ("changed" . "change") ("deleted" . "delete")
                                      ("mode" . "mode") ("link" . "link") ("renamed" . "rename"))))
                   (format "%s" kind)))
         (facts (delq nil (list (unless (haft-true change 'directory) (haft-bytes (or (haft-get change 'size) 0)))
                                (when (haft-get change 'replaces)
                                  (format "replaces %s" (haft-bytes (haft-get change 'replaces))))
                                (when (> (+ added removed) 0) (format "+%d -%d" added removed))
                                (when (haft-true change 'binary) "binary")
                                (when (haft-true change 'executable) "executable")))))
    (concat
     (if summary (propertize (haft-safe-line summary) 'face 'haft-label)
       (concat
        (propertize word 'face (pcase kind ("created" 'diff-indicator-added) ("deleted" 'diff-indicator-removed)
                                      (_ 'haft-label)))
        " " (haft-safe-line (or (haft-get change 'path) "")) (if (haft-true change 'directory) "/" "")
        (if from (format " from %s" (haft-safe-line from)) "")
        (if facts (propertize (format "  %s" (string-join facts ", ")) 'face 'haft-faint) "")))
     (mapconcat (lambda (words) (propertize (format "  ! %s" words) 'face 'haft-warning))
                (haft-page-flag-words change) ""))))

(defun haft-page-git-folder (path)
  "The git folder that PATH lies in, or nil."
  (and (stringp path) (string-match "\\`\\(?:.*/\\)?\\.git\\(?:/\\|\\'\\)" path) (match-string 0 path)))

(defun haft-page-rows (changes)
  "CHANGES in the order in which they are shown: flagged ones first.
Build output comes last, and what the summary of a commit stands for
is left out."
  (let* ((told (delq nil (mapcar (lambda (change) (and (haft-get change 'summary)
                                                       (haft-page-git-folder (haft-get change 'path))))
                                 changes)))
         (alone (seq-filter (lambda (change)
                              (or (haft-get change 'summary) (haft-page-flag-words change)
                                  (not (member (haft-page-git-folder (haft-get change 'path)) told))))
                            changes))
         (rank (lambda (change) (cond ((haft-page-flag-words change) 0)
                                      ((haft-true change 'derived) 2) (t 1)))))
    (seq-sort-by rank #'< alone)))

(defun haft-page-insert-changes (changes)
  "Insert CHANGES, each with the beginning of its diff."
  (let* ((rows (haft-page-rows changes)) (more (- (length rows) haft-page-paths))
         (room haft-page-lines) (cut 0))
    (when (cdr rows) (haft-page-insert 'haft-label (haft-page-counts rows) "\n"))
    (dolist (change (seq-take rows haft-page-paths))
      (let ((path (haft-get change 'path)) (text (or (haft-get change 'patch) (haft-get change 'diff))))
        (insert (propertize (format "%s %s\n" (if (member path haft-page-marked) "*" " ")
                                    (haft-page-change-line change))
                            'haft-path path))
        (when (haft-page-unseen-p change)
          (haft-page-insert 'haft-warning "  Its content cannot be shown here\n"))
        (when (and text (not (haft-true change 'derived)))
          (let* ((lines (split-string (string-remove-suffix "\n" text) "\n"))
                 (shown (min (length lines) haft-page-lines-each (max room 0))))
            (insert (propertize (haft-page-diff-text (seq-take lines shown)) 'haft-path path))
            (cl-decf room shown)
            (cl-incf cut (- (length lines) shown))
            (when (< shown (length lines))
              (haft-page-insert 'haft-faint (format "… %s\n" (haft-count (- (length lines) shown) "more line"))))))))
    (when (> more 0) (haft-page-insert 'haft-faint (format "… %s\n" (haft-count more "more path"))))
    (when (or (> more 0) (> cut 0))
      (haft-page-insert 'haft-warning "Not all of it fits here; d shows everything\n"))))

(defun haft-page-counts (changes)
  "How many paths of each kind CHANGES have."
  (format "%s: %s" (haft-count (length changes) "path")
          (string-join
           (delq nil (mapcar (lambda (kind)
                               (let ((some (seq-filter (lambda (change) (equal kind (haft-get change 'kind))) changes)))
                                 (when some
                                   (format "%d %s (%s)" (length some) kind
                                           (haft-bytes (apply #'+ (mapcar (lambda (one) (or (haft-get one 'size) 0)) some)))))))
                             '("created" "changed" "deleted" "mode" "link" "renamed")))
           ", ")))

(defun haft-page-diff-text (lines)
  "LINES of a diff, in the faces of `diff-mode'."
  (mapconcat
   (lambda (line)
     (propertize (concat (haft-safe line) "\n")
                 'face (cond ((string-match-p "\\`\\(?:\\+\\+\\+\\|---\\|diff \\)" line) 'diff-header)
                             ((string-prefix-p "+" line) 'diff-added)
                             ((string-prefix-p "-" line) 'diff-removed)
                             ((string-prefix-p "@" line) 'diff-hunk-header)
                             (t 'diff-context))))
   lines ""))

;;;;; Output

(defun haft-page-exit-code (card)
  "How the process of CARD ended, as a number; nil where there was none."
  (haft-get card 'output 'metadata 'exit_code))

(defun haft-page-said (output)
  "What the process of OUTPUT said, or the text of a tool that started none."
  (let* ((text (or (haft-get output 'displayContent) (haft-get output 'content) ""))
         (code (haft-get output 'metadata 'exit_code))
         (end (and code (string-match (format "\\[exit %d\\][^\0]*\\'" code) text))))
    (if end (substring text 0 end) text)))

(defun haft-page-insert-output (card)
  "Insert what the call of CARD said when it ran aside."
  (let* ((output (haft-get card 'output)) (code (haft-page-exit-code card)) (told (haft-get output 'structured))
         (isolation (haft-get card 'isolation)) (said (string-trim-right (haft-page-said output)))
         (took (or (haft-get told 'durationMs) (haft-get told 'duration))))
    (when (or code (null (haft-items (haft-get card 'changes))))
      (haft-page-heading "## Output")
      (when code
        (haft-page-insert (if (eql code 0) nil 'haft-warning) (format "exit %d" code))
        (insert (if took (format " after %s" (haft-took took)) "")
                (if isolation (format ", isolation %s" (haft-safe-line isolation)) "")
                (if (string-empty-p said) ", no output" "") "\n"))
      (unless (string-empty-p said) (insert (haft-page-barred said 4 12)))
      (dolist (left (haft-items (haft-get told 'leftOut)))
        (haft-page-insert 'haft-warning "left out: " (haft-safe-line left) "\n"))
      (when (stringp (haft-get told 'hint)) (insert (haft-safe (haft-get told 'hint)) "\n"))
      (insert "\n"))))

(defun haft-page-barred (text &optional head tail)
  "TEXT with a bar before each line, so that none is taken for haft's own.
With HEAD and TAIL only so many lines of its beginning and end."
  (let* ((lines (split-string (haft-safe text) "\n")) (out (if head (- (length lines) head tail) 0))
         (bar (lambda (line) (concat (propertize "  │ " 'face 'haft-faint) line "\n"))))
    (if (<= out 1) (mapconcat bar lines "")
      (concat (mapconcat bar (seq-take lines head) "")
              (propertize (format "  │ … %s; d shows all\n" (haft-count out "more line")) 'face 'haft-faint)
              (mapconcat bar (seq-drop lines (+ head out)) "")))))

;;;;; Forms and results

(defun haft-page-insert-form (card)
  "Insert the form of CARD."
  (insert (haft-safe (or (haft-get card 'message) "")) "\n\n")
  (haft-page-heading "## Fields")
  (dolist (field (haft-field-all (haft-get card 'form 'schema)))
    (cl-destructuring-bind (name schema required) field
      (let ((about (string-join (delq nil (list (haft-get schema 'title) (haft-get schema 'description))) ": ")))
        (haft-page-insert 'haft-label (haft-safe-line name))
        (insert (format " (%s%s) %s\n" (haft-field-kind schema)
                        (cond ((assq 'default schema)
                               (format ", default %s" (haft-safe-line (haft-json-text (alist-get 'default schema)))))
                              (required "") (t ", optional"))
                        (haft-safe-line about))))))
  (insert "\n"))

(defun haft-page-insert-result (card)
  "Insert what result CARD waits for."
  (insert (haft-safe (or (haft-get card 'message) "")) "\n\n")
  (haft-page-insert-command card)
  (haft-page-insert-arguments card)
  (haft-page-heading "## Its Schema")
  (insert (haft-json-pretty (haft-get card 'schema)) "\n\n"))

;;;;; Actions

(defun haft-page-actions (card)
  "What can be answered to CARD, as pairs of key and words."
  (let ((own (haft-page-own-p card)))
    (pcase (haft-get card 'kind)
      ("form" '(("y" . "Fill it in, field by field") ("n" . "Decline; you can say why")
                ("?" . "More information") ("q" . "Later: it stays open")))
      ("result" '(("y" . "Give the result, as JSON") ("n" . "It will not be done; you can say why")
                  ("?" . "More information") ("q" . "Later: it stays open")))
      (_ (delq nil
               (list '("y" . "Approve: do exactly what this page shows")
                     '("n" . "Reject: nothing is done; you can say why, and the caller reads it")
                     (unless (or haft-page-edited (haft-page-withheld card))
                       '("a" . "Always approve this tool; you choose how much it covers"))
                     (when own '("e" . "Edit the input, then see what it would do"))
                     '("d" . "Show everything: whole diffs, all output, all arguments")
                     (when (and (cdr (haft-items (haft-get card 'changes))) (not haft-page-edited))
                       '("m" . "Mark a path, to approve only what is marked; u unmarks"))
                     '("?" . "More information")
                     (if haft-page-edited '("q" . "Back to the question as it was asked")
                       '("q" . "Later: it stays open"))))))))

(defun haft-page-prompt (card)
  "The line above the page of CARD: what a yes does, and the keys."
  (let ((keys (mapcar #'car (haft-page-actions card))))
    (concat " " (propertize (cond ((equal "form" (haft-get card 'kind)) "Fill this in?")
                                  ((equal "result" (haft-get card 'kind)) "Give the result?")
                                  (haft-page-edited "Do this instead?")
                                  (t (pcase (haft-page-purpose card)
                                       ('undo "Undo this?") ('redo "Redo this?") ('act "Do this?") (_ "Commit this?"))))
                            'face 'haft-label)
            (mapconcat (lambda (word) (if (member (substring word 1 2) keys) (concat " " word) ""))
                       '("[y]es" "[n]o" "[a]lways" "[e]dit" "[d]iff" "[m]ark" "[?]" "[q]") "")
            (if haft-page-edited " back" " later"))))

(defun haft-page-insert-actions (card)
  "Insert what can be answered to CARD."
  (let ((withheld (and (equal "approval" (haft-get card 'kind)) (haft-page-own-p card)
                       (not haft-page-edited) (haft-page-withheld card))))
    (haft-page-heading "## Actions")
    (pcase-dolist (`(,key . ,words) (haft-page-actions card))
      (haft-page-insert 'haft-label key)
      (insert " - " words "\n"))
    (when withheld (haft-page-insert 'haft-faint "A yes cannot be remembered: " withheld "\n"))))

(provide 'haft-page)
;;; haft-page.el ends here
