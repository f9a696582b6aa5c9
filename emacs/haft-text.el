;;; haft-text.el --- Texts of agents, safe to look at  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Names, paths, commands and output come from agents and files.  Before they
;; are shown, everything is written out that hides, moves the cursor, or looks
;; like something else, in the notation that the terminal has: \u{202e}.

;;; Code:

(require 'cl-lib)
(require 'parse-time)
(require 'seq)
(require 'subr-x)

(defface haft-heading '((t :inherit (bold font-lock-keyword-face)))
  "Headings of the buffers of haft."
  :group 'haft)

(defface haft-label '((t :inherit bold))
  "Labels before a value."
  :group 'haft)

(defface haft-warning '((t :inherit warning))
  "What to look at twice."
  :group 'haft)

(defface haft-faint '((t :inherit shadow))
  "What matters less."
  :group 'haft)

(defface haft-quote '((t :inherit italic))
  "What an agent says in its own words."
  :group 'haft)

;;;; What cannot be trusted

(defconst haft-text--hidden
  (concat "["
          "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160"
          "\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
          "\u2800\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
          "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
          "\U000e0000-\U000e0fff\U000f0000-\U0010ffff\x3fff80-\x3fffff"
          (string #xd800) "-" (string #xdfff)
          "]")
  "Characters that cannot be seen, or change how others are seen.")

(defconst haft-text--heap
  "\\([\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]\\{4\\}\\)\\([\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]+\\)"
  "More marks on one letter than any language needs.")

(defconst haft-text--other-shape
  "[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\uff01-\uff5e\ufb00-\ufb06\u2024\u2044\u2215\u2010-\u2013\u2212\u201a\u037e\uff0f\U0001d400-\U0001d7ff\U0001f100-\U0001f16f\u24b6-\u24e9]"
  "Letters, signs and blanks that look like those of ASCII.")

(defconst haft-text--other-letter "[\u0370-\u058f\u13a0-\u13ff\u1c80-\u1c8f\u1f00-\u1fff\u2c80-\u2dff\ua640-\ua69f\uab70-\uabbf]"
  "Letters of scripts in which many are shaped like Latin ones.")

(defun haft-text--written-out (text)
  "Every character of TEXT as its number."
  (mapconcat (lambda (char) (format "\\u{%x}" char)) text ""))

(defun haft-text--joins-p (text at)
  "Whether the character AT of TEXT joins letters or emoji that need it."
  (and (> at 0)
       (memq (aref text at) '(#x200c #x200d #xfe0f))
       (let ((before (aref text (1- at))))
         (and (>= before #x620) (not (<= #x2000 before #x206f))))))

(defun haft-safe (text)
  "TEXT with everything written out that hides or changes what stands beside it.
Lines and tabs stay as they are."
  (if (not (string-match-p "[^ -~\n\t]" text))
      text
    (let ((text (replace-regexp-in-string
                 haft-text--heap
                 (lambda (heap)
                   (concat (substring heap 0 4) (haft-text--written-out (substring heap 4))))
                 text t t)))
      (let ((parts nil) (from 0) (at 0))
        (while (string-match haft-text--hidden text at)
          (let ((found (match-beginning 0)))
            (unless (haft-text--joins-p text found)
              (push (substring text from found) parts)
              (push (haft-text--written-out (substring text found (1+ found))) parts)
              (setq from (1+ found)))
            (setq at (1+ found))))
        (if (null parts) text
          (apply #'concat (nreverse (cons (substring text from) parts))))))))

(defun haft-safe-command (text)
  "TEXT as a machine takes it: what only looks like ASCII is written out too."
  (let ((safe (haft-safe text)))
    (if (not (string-match-p "[^[:ascii:]]" safe))
        safe
      (setq safe (replace-regexp-in-string
                  haft-text--other-shape #'haft-text--written-out safe t t))
      ;; A word that mixes ASCII letters with others that look like them.
      (replace-regexp-in-string
       "[[:alnum:]_]+"
       (lambda (word)
         (if (let ((case-fold-search nil)) (string-match-p "[A-Za-z]" word))
             (replace-regexp-in-string haft-text--other-letter #'haft-text--written-out word t t)
           word))
       safe t t))))

(defun haft-safe-line (text)
  "TEXT on one line, for names and paths."
  (replace-regexp-in-string "\t" "⟨tab⟩"
                            (replace-regexp-in-string "\n" "⟨newline⟩" (haft-safe-command text) t t)
                            t t))

;;;; Words for numbers

(defun haft-count (number noun)
  "NUMBER with NOUN, which gets an s unless there is one."
  (format "%s %s%s" (haft-text--grouped number) noun (if (= number 1) "" "s")))

(defun haft-text--grouped (number)
  "NUMBER with a comma after every three digits."
  (let ((text (number-to-string number)))
    (while (string-match "\\`\\([0-9]+\\)\\([0-9]\\{3\\}\\)" text)
      (setq text (replace-match "\\1,\\2" t nil text)))
    text))

(defun haft-bytes (size)
  "SIZE as people say it: 812 B, 1.4 KB."
  (if (< size 1000) (format "%d B" size)
    (let ((value (/ size 1000.0)) (units '("KB" "MB" "GB" "TB")))
      (while (and (>= value 1000) (cdr units))
        (setq value (/ value 1000) units (cdr units)))
      (format "%.1f %s" value (car units)))))

(defun haft-time (text)
  "The time that TEXT says, as seconds; nil where it says none."
  (and (stringp text)
       (ignore-errors
         ;; Emacs reads no more than some digits of a second.
         (float-time (parse-iso8601-time-string
                      (replace-regexp-in-string "\\.[0-9]+" "" text))))))

(defun haft-ago (text)
  "How long ago the time TEXT is: 12s ago, 5m ago."
  (let ((time (haft-time text)))
    (if (null time) "at an unknown time"
      (let ((seconds (max 0 (floor (- (float-time) time)))))
        (format "%s ago" (cond ((< seconds 60) (format "%ds" seconds))
                               ((< seconds 3600) (format "%dm" (/ seconds 60)))
                               ((< seconds 86400) (format "%dh" (/ seconds 3600)))
                               (t (format "%dd" (/ seconds 86400)))))))))

(defun haft-clock (text)
  "The time TEXT as a time of day, with the day unless that is today."
  (let ((time (haft-time text)))
    (if (null time) "an unknown time"
      (let ((today (format-time-string "%F" nil)) (day (format-time-string "%F" time)))
        (format-time-string (if (equal today day) "%H:%M" "%F %H:%M") time)))))

(defun haft-took (ms)
  "MS milliseconds as people say it."
  (cond ((null ms) "")
        ((< ms 1000) (format "%d ms" ms))
        ((< ms 60000) (format "%.1fs" (/ ms 1000.0)))
        (t (format "%dm" (/ ms 60000)))))

;;;; JSON

(defun haft-json-read (text)
  "The value of the JSON TEXT.  Objects are alists, lists are vectors."
  (json-parse-string text :object-type 'alist :array-type 'array
                     :null-object :null :false-object :false))

(defun haft-json-write (value)
  "VALUE as JSON text, in bytes."
  (json-serialize value :null-object :null :false-object :false))

(defun haft-json-text (value)
  "VALUE as JSON text, in characters."
  (decode-coding-string (haft-json-write value) 'utf-8))

(defun haft-get (value &rest keys)
  "What VALUE has under KEYS, one inside the other; nil where there is nothing."
  (while (and keys value)
    (setq value (and (consp value) (alist-get (pop keys) value))))
  (if (eq value :null) nil value))

(defun haft-true (value &rest keys)
  "Whether VALUE has true under KEYS."
  (eq t (apply #'haft-get value keys)))

(defun haft-items (list)
  "The members of LIST, a JSON list or nothing."
  (if (vectorp list) (append list nil) nil))

(defun haft-object-p (value)
  "Whether VALUE is a JSON object."
  (or (null value) (and (consp value) (consp (car value)))))

(defun haft-text--lines (value indent quoted)
  "VALUE as JSON over several lines, from column INDENT on.
QUOTED writes a text as JSON."
  (let ((inner (make-string (+ indent 2) ?\s)) (outer (make-string indent ?\s)))
    (cond
     ((stringp value) (funcall quoted value))
     ((equal value []) "[]")
     ((vectorp value)
      (format "[\n%s\n%s]"
              (mapconcat (lambda (one) (concat inner (haft-text--lines one (+ indent 2) quoted))) value ",\n")
              outer))
     ((null value) "{}")
     ((consp value)
      (format "{\n%s\n%s}"
              (mapconcat (lambda (pair)
                           (format "%s%s: %s" inner (funcall quoted (symbol-name (car pair)))
                                   (haft-text--lines (cdr pair) (+ indent 2) quoted)))
                         value ",\n")
              outer))
     (t (haft-json-text value)))))

(defun haft-json-pretty (value &optional longest)
  "VALUE as JSON over several lines, safe to look at.
Texts of more than LONGEST characters are cut, with a note."
  (haft-text--lines
   value 0
   (lambda (text)
     (let ((more (and longest (- (length text) longest))))
       (if (and more (> more 0))
           (format "%s… (%s more)" (haft-safe (haft-json-text (substring text 0 longest)))
                   (haft-count more "character"))
         (haft-safe (haft-json-text text)))))))

(defun haft-json-exact (value)
  "VALUE as JSON over several lines, to be edited.
What cannot be seen is written as JSON writes it."
  (haft-text--lines
   value 0
   (lambda (text)
     (replace-regexp-in-string
      haft-text--hidden
      (lambda (hidden)
        (mapconcat (lambda (unit) (format "\\u%04x" unit)) (haft-text--units (aref hidden 0)) ""))
      (haft-json-text text) t t))))

(defun haft-text--units (char)
  "The numbers by which JSON writes CHAR."
  (if (< char #x10000) (list char)
    (let ((rest (- char #x10000)))
      (list (+ #xd800 (ash rest -10)) (+ #xdc00 (logand rest #x3ff))))))

;;;; What a call is about

(defconst haft-text--telling
  '(command code pattern path from source query url message callId tool)
  "Fields that say what a call is about, the most telling first.")

(defun haft-text--in-one-line (value)
  "VALUE in one line, or nil where it says nothing."
  (let ((text (cond ((stringp value) (string-join (split-string value) " "))
                    ((vectorp value)
                     (string-join (delq nil (mapcar #'haft-text--in-one-line value)) " "))
                    ((numberp value) (number-to-string value)))))
    (and text (not (string-empty-p text)) text)))

(defun haft-subject (input)
  "What a call with INPUT is about, in a few words; empty where nothing tells."
  (if (not (haft-object-p input)) ""
    (let ((told (or (seq-some (lambda (name) (haft-text--in-one-line (alist-get name input)))
                              haft-text--telling)
                    (seq-some (lambda (pair) (haft-text--in-one-line (cdr pair))) input)))
          (to (and (or (assq 'from input) (assq 'source input))
                   (or (haft-text--in-one-line (alist-get 'to input))
                       (haft-text--in-one-line (alist-get 'dest input))))))
      (haft-safe-line (concat (or told "") (if to (concat " → " to) ""))))))

(provide 'haft-text)
;;; haft-text.el ends here
