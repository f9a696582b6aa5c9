;;; haft-field.el --- Read values that fit a JSON schema  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Fields of tools and forms are read in the minibuffer, each as its schema
;; says.  Whole inputs are edited as JSON in a buffer of their own.

;;; Code:

(require 'cl-lib)
(require 'haft-text)

(defun haft-field--choices (schema)
  "The values that SCHEMA lets choose from, as pairs of words and value."
  (let ((titled (haft-items (or (haft-get schema 'oneOf) (haft-get schema 'anyOf))))
        (values (haft-items (haft-get schema 'enum))))
    (cond
     ((and titled (cl-every (lambda (one) (assq 'const one)) titled))
      (mapcar (lambda (one)
                (let ((value (haft-get one 'const)) (title (haft-get one 'title)))
                  (cons (haft-field--words (if title (format "%s (%s)" title value) value)) value)))
              titled))
     (values
      (cl-loop for value in values for at from 0
               for title = (nth at (haft-items (haft-get schema 'enumNames)))
               collect (cons (haft-field--words (if title (format "%s (%s)" title value) value)) value))))))

(defun haft-field--words (value)
  "VALUE as somebody chooses it."
  (haft-safe-line (if (stringp value) value (haft-json-text value))))

(defun haft-field-kind (schema)
  "What can be filled in where SCHEMA holds, in a few words."
  (let ((type (haft-get schema 'type)))
    (cond
     ((haft-field--choices schema)
      (format "one of %s" (mapconcat #'car (haft-field--choices schema) ", ")))
     ((equal type "string") "text")
     ((equal type "integer") "whole number")
     ((equal type "number") "number")
     ((equal type "boolean") "yes or no")
     ((and (equal type "array") (haft-field--choices (haft-get schema 'items)))
      (format "any of %s" (mapconcat #'car (haft-field--choices (haft-get schema 'items)) ", ")))
     ((equal type "array") "list, as JSON")
     (t "JSON"))))

(defun haft-field--about (name schema)
  "The words by which the field NAME with SCHEMA is asked for."
  (let ((title (haft-get schema 'title)) (description (haft-get schema 'description)))
    (concat (haft-safe-line (or title name))
            (and description (format " – %s" (truncate-string-to-width (haft-safe-line description) 70 nil nil "…"))))))

(defun haft-field--until-it-fits (prompt default read)
  "Ask with PROMPT until READ takes the text; an empty one means DEFAULT.
READ signals an error with a sentence where the text does not fit."
  (let ((why nil) (found nil) (value nil))
    (while (not found)
      (let ((text (read-string (concat (and why (format "[%s] " why)) prompt) nil nil default)))
        (condition-case err
            (setq value (funcall read text) found t)
          (error (setq why (error-message-string err))))))
    value))

(defun haft-field--number (schema text)
  "The number that TEXT says, if it fits SCHEMA."
  (let ((integer (equal "integer" (haft-get schema 'type))) (text (string-trim text))
        (least (haft-get schema 'minimum)) (most (haft-get schema 'maximum)))
    (unless (string-match-p (if integer "\\`-?[0-9]+\\'" "\\`-?[0-9]+\\(\\.[0-9]+\\)?\\([eE][-+]?[0-9]+\\)?\\'") text)
      (error (if integer "Type a whole number" "Type a number")))
    (let ((number (string-to-number text)))
      (when (and least (< number least)) (error "At least %s" least))
      (when (and most (> number most)) (error "At most %s" most))
      number)))

(defun haft-field--json (text)
  "The value of the JSON TEXT, or an error that says where it is none."
  (condition-case err
      (haft-json-read text)
    (error (error "That is no JSON: %s" (haft-field--json-words err)))))

(defun haft-field--json-words (err)
  "What ERR, from the reader of JSON, says."
  (let ((words (cadr err))) (if (stringp words) words (error-message-string err))))

(defun haft-field--path-p (name folder)
  "Whether the field NAME is a path in FOLDER, which is there."
  (and folder (file-directory-p folder) (member name '("path" "source" "dest" "cwd" "from" "to"))))

(defun haft-read-field (name schema &optional folder)
  "Read a value for the field NAME that fits SCHEMA.
FOLDER is where paths are completed."
  (let* ((type (haft-get schema 'type)) (choices (haft-field--choices schema))
         (default (alist-get 'default schema))
         (default-text (and (assq 'default schema) (if (stringp default) default (haft-json-text default))))
         (prompt (format "%s (%s)%s: " (haft-field--about name schema) (haft-field-kind schema)
                         (if default-text (format " [%s]" (haft-safe-line default-text)) "")))
         (items (and (equal type "array") (haft-field--choices (haft-get schema 'items)))))
    (cond
     (choices (cdr (assoc (completing-read prompt choices nil t nil nil
                                           (car (rassoc default choices)))
                          choices)))
     (items (vconcat (mapcar (lambda (word) (cdr (assoc word items)))
                             (completing-read-multiple prompt items nil t))))
     ((equal type "boolean") (if (y-or-n-p (format "%s? " (haft-field--about name schema))) t :false))
     ((member type '("integer" "number"))
      (haft-field--until-it-fits prompt default-text (lambda (text) (haft-field--number schema text))))
     ((and (equal type "string") (haft-field--path-p name folder))
      (let ((root (file-name-as-directory (expand-file-name folder))))
        (file-relative-name (expand-file-name (read-file-name prompt root root) root) root)))
     ((equal type "string") (read-string prompt nil nil default-text))
     (t (haft-field--until-it-fits prompt default-text #'haft-field--json)))))

(defun haft-field-all (schema)
  "The fields of the object SCHEMA, as (NAME SCHEMA IS-REQUIRED)."
  (let ((required (haft-items (haft-get schema 'required))))
    (mapcar (lambda (pair)
              (let ((name (symbol-name (car pair))))
                (list name (cdr pair) (and (member name required) t))))
            (haft-get schema 'properties))))

(defun haft-read-object (schema &optional folder)
  "Read an object that fits SCHEMA: what is required, then what one chooses.
FOLDER is where paths are completed."
  (let* ((fields (haft-field-all schema)) (value nil)
         (optional (cl-remove-if #'cl-third fields)) (choice nil))
    (dolist (field (cl-remove-if-not #'cl-third fields))
      (push (cons (intern (car field)) (haft-read-field (car field) (cadr field) folder)) value))
    (while (and optional (not (equal choice "")))
      (let ((completion-extra-properties
             (list :annotation-function
                   (lambda (name)
                     (let ((about (haft-get (cadr (assoc name optional)) 'description)))
                       (and about (concat "  " (haft-safe-line about))))))))
        (setq choice (completing-read "Another field (Enter for no more): " (mapcar #'car optional) nil t)))
      (unless (equal choice "")
        (let ((field (assoc choice optional)))
          (push (cons (intern choice) (haft-read-field choice (cadr field) folder)) value)
          (setq optional (delq field optional)))))
    (nreverse value)))

;;;; JSON in a buffer of its own

(defvar-local haft-edit--done nil "What is called with the value.")

(defvar haft-edit-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'haft-edit-finish)
    (define-key map (kbd "C-c C-k") #'haft-edit-abort)
    map)
  "Keys of `haft-edit-mode'.")

(define-derived-mode haft-edit-mode prog-mode "haft JSON"
  "Mode for a value that is given as JSON.
\\{haft-edit-mode-map}"
  (setq-local indent-tabs-mode nil
              font-lock-defaults '((("\\(\"\\(?:[^\"\\\n]\\|\\\\.\\)*\"\\)[ \t]*:" 1 font-lock-variable-name-face t)
                                    ("\\_<\\(?:true\\|false\\|null\\)\\_>" . font-lock-constant-face)))
              header-line-format (substitute-command-keys
                                  "\\[haft-edit-finish] goes on, \\[haft-edit-abort] gives up"))
  (modify-syntax-entry ?\" "\"" (syntax-table)))

(defun haft-edit (name value done)
  "Edit VALUE as JSON in a buffer called NAME; DONE gets the new one."
  (let ((buffer (get-buffer-create name)))
    (with-current-buffer buffer
      (let ((inhibit-read-only t)) (erase-buffer))
      (haft-edit-mode)
      (insert (haft-json-exact value) "\n")
      (goto-char (point-min))
      (set-buffer-modified-p nil)
      (setq haft-edit--done done))
    (pop-to-buffer buffer)))

(defun haft-edit-finish ()
  "Take the value as it is here, if it is JSON."
  (interactive)
  (let ((text (buffer-string)) (done haft-edit--done) (buffer (current-buffer)) value)
    (condition-case err
        (setq value (haft-json-read text))
      (json-parse-error
       ;; Where it went wrong is told in bytes.
       (let ((at (nth 5 err)))
         (when (integerp at)
           (goto-char (min (point-max) (or (byte-to-position at) (point))))
           (skip-syntax-backward "w_")))
       (user-error "That is no JSON: %s" (haft-field--json-words err)))
      (error (user-error "That is no JSON: %s" (haft-field--json-words err))))
    (when (string-search "[redacted]" text)
      (user-error "Replace [redacted] first: haft hides a secret there, and would take the word itself"))
    (quit-window t (get-buffer-window buffer))
    (when (buffer-live-p buffer) (kill-buffer buffer))
    (funcall done value)))

(defun haft-edit-abort ()
  "Give up; nothing changes."
  (interactive)
  (quit-window t)
  (message "Nothing was changed"))

(provide 'haft-field)
;;; haft-field.el ends here
