;;; haft-style.el --- What compiler, checkdoc and package-lint say  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Each function is for a batch Emacs, prints what is wrong, and ends with an
;; exit code.

;;; Code:

(require 'bytecomp)
(require 'checkdoc)
(require 'cl-lib)

(defvar package-lint-main-file)
(declare-function package-lint-buffer "package-lint")

(defconst haft-style--folder (file-name-directory (or load-file-name buffer-file-name)) "Where the files are.")

(defun haft-style--files (pattern)
  "The files of the package that match PATTERN."
  (directory-files haft-style--folder t pattern))

(defun haft-style--exit (faults)
  "Print FAULTS, and end."
  (dolist (fault faults) (princ (concat fault "\n")))
  (kill-emacs (if faults 1 0)))

(defun haft-style-compile ()
  "Compile every file, with no warning and nothing left behind."
  (let ((faults nil))
    (dolist (file (haft-style--files "\\.el\\'"))
      (with-temp-buffer
        ;; In an Emacs of its own, so that a file which is not required is missed.
        (unless (eql 0 (call-process (expand-file-name invocation-name invocation-directory) nil t nil
                                     "-Q" "--batch" "-L" haft-style--folder "-l" (expand-file-name "haft-style" haft-style--folder)
                                     "--eval" (format "(haft-style-compile-one %S)" file)))
          (push (buffer-string) faults))))
    (haft-style--exit faults)))

(defun haft-style-compile-one (file)
  "Compile FILE, and end."
  (let* ((byte-compile-error-on-warn t) (target (make-temp-file "haft-compiled"))
         (byte-compile-dest-file-function (lambda (_file) target)))
    (let ((compiled (byte-compile-file file)))
      (delete-file target)
      (kill-emacs (if compiled 0 1)))))

(defun haft-style-checkdoc ()
  "Check the documentation of every file."
  (let ((faults nil)
        ;; This one takes every verb of a sentence for its first.
        (checkdoc-verb-check-experimental-flag nil))
    (dolist (file (haft-style--files "\\.el\\'"))
      (let ((checkdoc-create-error-function
             (lambda (text start _end &optional _unfixable)
               (push (format "%s:%d: %s" file (if start (line-number-at-pos start) 0) text) faults)
               nil)))
        (with-current-buffer (find-file-noselect file) (checkdoc-current-buffer t))))
    (haft-style--exit faults)))

(defun haft-style-lint ()
  "Lint the package, where package-lint is installed; exit code 77 where it is not."
  (package-initialize)
  (unless (require 'package-lint nil t) (kill-emacs 77))
  (setq package-lint-main-file (expand-file-name "haft.el" haft-style--folder))
  (let ((faults nil))
    (dolist (file (haft-style--files "\\`haft\\(?:-\\(?:text\\|client\\|field\\|page\\|approval\\|log\\|run\\)\\)?\\.el\\'"))
      (with-current-buffer (find-file-noselect file)
        (pcase-dolist (`(,line ,_column ,_type ,text) (package-lint-buffer))
          ;; The package has no page of its own yet, and an older linter does not know newer versions of Emacs.
          (unless (string-match-p "Homepage or URL header\\|uninstallable in all released" text)
            (push (format "%s:%d: %s" file line text) faults)))))
    (haft-style--exit faults)))

(provide 'haft-style)
;;; haft-style.el ends here
