;;; haft-tests.el --- Tests of haft.el against a real gateway  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Run with HAFT_PROGRAM=/path/to/haft in the environment:
;;
;;   "emacs" -Q --batch -L . -l haft-tests -f ert-run-tests-batch-and-exit
;;
;; Everything happens in a home of its own, with a gateway that `haft-connect'
;; starts at a free port.  Nothing sleeps: what has to happen is waited for.

;;; Code:

(require 'cl-lib)
(require 'emacs-agent)
(require 'ert)
(require 'haft)

(defvar haft-tests--folder (file-truename (make-temp-file "haft-tests-" t)) "The home of the tests.")
(defvar haft-tests--messages nil "What was said, newest first.")
(defconst haft-tests--source (file-name-directory (or load-file-name buffer-file-name)) "Where this file is.")

;;;; The house

(setq haft-program (or (getenv "HAFT_PROGRAM") (error "HAFT_PROGRAM names no program"))
      haft-pause 0
      auth-sources (list (expand-file-name ".authinfo" haft-tests--folder))
      auth-source-do-cache nil
      process-environment
      (append (list (concat "HOME=" haft-tests--folder)
                    (concat "HAFT_DATA_DIR=" (expand-file-name "data" haft-tests--folder))
                    (concat "XDG_CONFIG_HOME=" (expand-file-name "config" haft-tests--folder))
                    "HAFT_SERVE_LISTEN=127.0.0.1:0"
                    ;; haft takes each such variable for a setting.
                    "HAFT_PROGRAM")
              process-environment))

(add-hook 'kill-emacs-hook
          (lambda ()
            (haft-disconnect)
            (call-process haft-program nil nil nil "serve" "--stop")
            (delete-directory haft-tests--folder t)))

(advice-add 'message :before (lambda (format &rest parts)
                               (when format
                                 (push (truncate-string-to-width (apply #'format-message format parts) 200)
                                       haft-tests--messages))))

(defun haft-tests--until (what holds)
  "Wait until HOLDS returns something, and return that; WHAT is waited for."
  (let ((deadline (+ (float-time) 30)) (found nil))
    (while (not (setq found (funcall holds)))
      (when (> (float-time) deadline)
        (ert-fail (format "%s did not happen; state %s, said: %S" what haft-state (seq-take haft-tests--messages 5))))
      (accept-process-output nil 0.05))
    found))

(defun haft-tests--said (pattern)
  "What was said that has PATTERN."
  (seq-find (lambda (said) (string-match-p pattern said)) haft-tests--messages))

(defun haft-tests--haft (folder &rest arguments)
  "Run haft with ARGUMENTS in FOLDER, with nobody at its terminal.
Return the value that it prints."
  (with-temp-buffer
    (let ((default-directory (file-name-as-directory folder)) (coding-system-for-read 'utf-8)
          (coding-system-for-write 'utf-8))
      (apply #'call-process haft-program null-device (list t nil) nil (append arguments '("--json"))))
    (goto-char (point-min))
    (unless (eobp) (haft-json-read (buffer-substring (point-min) (line-end-position))))))

(defun haft-tests--call (folder tool input)
  "Let somebody call TOOL with INPUT in FOLDER; return the id of the call."
  (haft-get (haft-tests--haft folder "call" tool (haft-json-text input)) 'tool_call_id))

(defun haft-tests--write (folder name content)
  "Write CONTENT to the file NAME in FOLDER."
  (with-temp-file (expand-file-name name folder) (insert content)))

(defun haft-tests--read (folder name)
  "The content of the file NAME in FOLDER; nil where there is none."
  (let ((path (expand-file-name name folder)))
    (when (file-exists-p path)
      (with-temp-buffer (insert-file-contents path) (buffer-string)))))

(defmacro haft-tests--with (folder &rest body)
  "Run BODY connected, with a workspace of its own as FOLDER and no question open."
  (declare (indent 1))
  `(let ((,folder (make-temp-file (expand-file-name "work-" haft-tests--folder) t)))
     (make-directory (expand-file-name ".git" ,folder))
     (haft-tests--connect)
     (unwind-protect (progn ,@body)
       (haft-tests--reject-all))))

(defun haft-tests--connect ()
  "Be connected, and forget what was said."
  (unless (eq haft-state 'on)
    (haft-connect)
    (haft-tests--until "connecting" (lambda () (eq haft-state 'on))))
  (setq haft-tests--messages nil))

(defun haft-tests--reject-all ()
  "Close what a test has left open."
  (when (get-buffer haft-approval-buffer) (kill-buffer haft-approval-buffer))
  (haft-tests--connect)
  (let ((haft-pop-up nil))
    (dolist (card (haft-items (haft-get (haft-tests--get "/api/approvals?limit=200") 'items)))
      (call-process haft-program nil nil nil "reject" (haft-get card 'id)
                    "--workspace" (or (haft-get card 'workspace) haft-tests--folder)))
    (haft-tests--until "an empty queue" (lambda () (null haft-questions)))))

(defun haft-tests--get (path)
  "What the gateway has at PATH."
  (let ((answer nil))
    (haft-request "GET" path (lambda (_status value) (setq answer (list value))))
    (car (haft-tests--until path (lambda () answer)))))

(defun haft-tests--shown (id)
  "Wait until the question of the call ID is shown.
Return the text of its page."
  (haft-tests--until "the question" (lambda () (equal id (haft-approval--shown))))
  (haft-tests--page))

(defun haft-tests--page ()
  "The text of the page."
  (with-current-buffer haft-approval-buffer (buffer-substring-no-properties (point-min) (point-max))))

(defun haft-tests--press (key &rest typed)
  "Press KEY on the page of the question.
TYPED are the answers to what is asked then."
  (with-current-buffer haft-approval-buffer
    (let ((command (lookup-key haft-approval-mode-map key)))
      (haft-tests--typing typed (lambda () (call-interactively command))))))

(defun haft-tests--typing (typed function)
  "Call FUNCTION; TYPED are the answers to what it asks."
  (cl-letf* ((next (lambda (&rest _) (if typed (pop typed) (ert-fail "more was asked than expected"))))
             ((symbol-function 'read-string) next)
             ((symbol-function 'completing-read) next)
             ((symbol-function 'read-file-name) next)
             ((symbol-function 'y-or-n-p) next))
    (funcall function)))

(defun haft-tests--ended (id)
  "Wait until the call ID has ended, and return its status."
  (haft-tests--until "the end of the call"
                     (lambda () (let ((call (haft-tests--get (haft-path "/api/calls/%s" id))))
                                  (and (equal "ended" (haft-get call 'state)) (haft-get call 'status))))))

;;;; Texts

(ert-deftest haft-tests-safe ()
  (should (equal (haft-safe "a\u202eb\x1b[31m\0\u200b\u2066z") "a\\u{202e}b\\u{1b}[31m\\u{0}\\u{200b}\\u{2066}z"))
  (should (equal (haft-safe "é 日本語 שלום 👩‍👧 ☂️\n\tx") "é 日本語 שלום 👩‍👧 ☂️\n\tx"))
  (should (equal (haft-safe "x\u200dy\ufe0f") "x\\u{200d}y\\u{fe0f}"))
  (should (equal (haft-safe (concat "a" (make-string 7 #x301)))
                 (concat "a" (make-string 4 #x301) "\\u{301}\\u{301}\\u{301}")))
  (should (equal (haft-safe-command "rm р/ａ ‐rf привет") "rm р/\\u{ff41} \\u{2010}rf привет"))
  (should (equal (haft-safe-command "cаt") "c\\u{430}t"))
  (should (equal (haft-safe-line "a\nb\tc") "a⟨newline⟩b⟨tab⟩c")))

(ert-deftest haft-tests-json ()
  (let* ((text "{\"b\\u202e\":[1,2.5,null,false,true,{},[]],\"a\":{\"c\":\"\\\\u{202e} \\u202e \\ud83d\\ude00 \\\"\\n\"}}")
         (value (haft-json-read text)))
    (should (equal value (haft-json-read (haft-json-exact value))))
    (should-not (string-search "\u202e" (haft-json-exact value)))
    (should-not (string-search "\u202e" (haft-json-pretty value)))
    (should (string-search "(90 characters more)" (haft-json-pretty `((x . ,(make-string 100 ?x))) 10)))))

(ert-deftest haft-tests-words ()
  (should (equal (haft-count 1 "path") "1 path"))
  (should (equal (haft-count 49880 "more line") "49,880 more lines"))
  (should (equal (mapcar #'haft-bytes '(812 1400 3200000)) '("812 B" "1.4 KB" "3.2 MB")))
  (should (equal (haft-subject '((timeoutMs . 5) (command . "make\n  test"))) "make test"))
  (should (equal (haft-subject '((from . "a") (to . "b"))) "a → b"))
  (should (equal (haft-subject '((recursive . t))) ""))
  (should (equal (haft-ago "nonsense") "at an unknown time")))

;;;; HTTP

(defun haft-tests--exchange (bytes size)
  "What an exchange makes of BYTES that come SIZE at a time."
  (let* ((body "") (ended nil)
         (exchange (haft-exchange--make :on-head #'ignore :on-body (lambda (piece) (setq body (concat body piece)))
                                        :on-end (lambda (why) (setq ended (list why))))))
    (dolist (piece (seq-partition bytes size)) (haft--received exchange piece))
    (list (haft-exchange-status exchange) body ended)))

(ert-deftest haft-tests-http ()
  (dolist (size '(1 2 7 1000))
    (should (equal (haft-tests--exchange "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" size) '(200 "hello" (nil))))
    (should (equal (haft-tests--exchange
                    "HTTP/1.1 202 X\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n" size)
                   '(202 "hello!" (nil))))
    (should (equal (haft-tests--exchange "HTTP/1.1 204 X\r\nContent-Length: 0\r\n\r\n" size) '(204 "" (nil))))
    (should (caar (last (haft-tests--exchange "SSH-2.0-OpenSSH\r\n\r\n" size))))))

(ert-deftest haft-tests-header-lines ()
  "Nothing smuggles a line into a request."
  (should-error (haft--request-text "http://x:1" "GET" "/" '(("Cookie" . "a\r\nX: y")) nil)))

(ert-deftest haft-tests-broken-answers ()
  "Whatever answers with nonsense, or not at all, is told as a sentence."
  (dolist (case '(("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\": [" . "no JSON") ("gibberish\r\n\r\n" . "no HTTP")
                  ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}" . "broke off") ("" . "cannot reach")))
    (let* ((answer (car case)) (told nil)
           (server (make-network-process
                    :name "nonsense" :server t :host "127.0.0.1" :service t :family 'ipv4 :coding 'binary
                    :filter (lambda (client _request) (process-send-string client answer) (delete-process client))))
           (url (format "http://127.0.0.1:%d" (process-contact server :service))))
      (unwind-protect
          (progn
            (haft--send url nil "GET" "/" nil (lambda (status value _headers) (setq told (haft-problem status value))) 10)
            (should (string-match-p (cdr case) (haft-tests--until "an answer" (lambda () told)))))
        (delete-process server)))))

(ert-deftest haft-tests-broken-events ()
  "An event that cannot be read is told, and the next one is heard."
  (let* ((haft--connection (haft-connection--make)) (heard nil)
         (haft-event-functions (list (lambda (name _data) (push name heard)))))
    (should (equal "id: 9" (haft--read-events haft--connection
                                              "id: 7\nevent: a\ndata: {broken\n\n: comment\n\nid: 8\nevent: b\ndata: {}\n\nid: 9")))
    (should (equal heard '("b")))
    (should (equal "8" (haft-connection-last-event haft--connection)))))

;;;; Fields

(ert-deftest haft-tests-fields ()
  (let ((read (lambda (schema &rest typed)
                (haft-tests--typing typed (lambda () (haft-read-field "f" (haft-json-read schema)))))))
    (should (equal (funcall read "{\"type\":\"string\"}" "x") "x"))
    (should (equal (funcall read "{\"enum\":[\"a\",2]}" "2") 2))
    (should (equal (funcall read "{\"oneOf\":[{\"const\":\"r\",\"title\":\"Red\"}]}" "Red (r)") "r"))
    (should (equal (funcall read "{\"type\":\"boolean\"}" nil) :false))
    (should (equal (funcall read "{\"type\":\"integer\",\"minimum\":1,\"maximum\":5}" "x" "2.5" "0" "6" "3") 3))
    (should (equal (funcall read "{\"type\":\"number\"}" "2.5") 2.5))
    (should (equal (funcall read "{\"type\":\"array\"}" "[1," "[1, {\"a\": null}]") [1 ((a . :null))]))
    (should (equal (haft-tests--typing '("a.txt" "limit" "2" "")
                                       (lambda () (haft-read-object
                                                   (haft-json-read "{\"properties\":{\"path\":{\"type\":\"string\"},\"limit\":{\"type\":\"integer\"}},\"required\":[\"path\"]}"))))
                   '((path . "a.txt") (limit . 2))))))

;;;; Questions

(ert-deftest haft-tests-connect ()
  "Without any settings a gateway is started, and the mode line says what is open."
  (haft-tests--with folder
    (should (equal "person" (haft-get (haft-connection-caller haft--connection) 'kind)))
    (should (equal " haft:0" (substring-no-properties haft-mode-line)))
    (should (memq 'haft-mode-line global-mode-string))
    (haft-tests--write folder "a.txt" "one\ntwo\n")
    (haft-tests--shown (haft-tests--call folder "delete_file" '((path . "a.txt"))))
    (should (equal " haft:1" (substring-no-properties haft-mode-line)))))

(ert-deftest haft-tests-approve ()
  "The page has its headings in order, y writes the file, and its buffer follows."
  (haft-tests--with folder
    (haft-tests--write folder "a.txt" "one\ntwo\n")
    (let* ((visiting (find-file-noselect (expand-file-name "a.txt" folder)))
           (id (haft-tests--call folder "write_file" '((path . "a.txt") (content . "one\nzwei\n"))))
           (page (haft-tests--shown id)) (from 0))
      (dolist (part '("# Tool Approval Request" "**Tool:** write_file" "**File:** a.txt" "**Context:** " "**Level:** write"
                      "**Why asked:** it would change `a.txt`" "by root" "## Preview of Changes" "change a.txt  9 B, +1 -1" "\n-two\n+zwei\n"
                      "A yes commits exactly this. It can be undone later." "## Arguments" "\"path\": \"a.txt\"" "## Actions" "y - " "n - " "a - Always approve"
                      "e - " "d - " "? - More information" "q - "))
        (setq from (or (string-search (string-replace "root" (user-login-name) part) page from)
                       (ert-fail (format "%s is missing:\n%s" part page)))))
      (with-current-buffer haft-approval-buffer
        (should (derived-mode-p 'special-mode))
        (should (equal " Commit this? [y]es [n]o [a]lways [e]dit [d]iff [?] [q] later"
                       (substring-no-properties (car header-line-format))))
        (goto-char (point-min))
        (search-forward "+zwei")
        (should (eq 'diff-added (get-text-property (1- (point)) 'face))))
      (haft-tests--press "y")
      (haft-tests--until "the answer" (lambda () (haft-tests--said "write_file: success")))
      (should (equal "one\nzwei\n" (haft-tests--read folder "a.txt")))
      (should-not haft-questions)
      (haft-tests--until "reading it again" (lambda () (with-current-buffer visiting (equal (buffer-string) "one\nzwei\n"))))
      (kill-buffer visiting))))

(ert-deftest haft-tests-modified-buffer ()
  "A buffer with changes of one's own is left alone."
  (haft-tests--with folder
    (haft-tests--write folder "a.txt" "one\n")
    (let ((visiting (find-file-noselect (expand-file-name "a.txt" folder))))
      (with-current-buffer visiting (insert "mine "))
      (haft-tests--shown (haft-tests--call folder "write_file" '((path . "a.txt") (content . "theirs\n"))))
      (haft-tests--press "y")
      (haft-tests--until "a sentence" (lambda () (haft-tests--said "left alone")))
      (with-current-buffer visiting
        (should (equal (buffer-string) "mine one\n"))
        (set-buffer-modified-p nil))
      (kill-buffer visiting))))

(ert-deftest haft-tests-reject ()
  "A no has words that the caller reads."
  (haft-tests--with folder
    (let ((id (haft-tests--call folder "write_file" '((path . "new.txt") (content . "x")))))
      (haft-tests--shown id)
      (haft-tests--press "n" "Wrong file path")
      (should (equal "rejected" (haft-tests--ended id)))
      (should (equal "Wrong file path" (haft-get (haft-tests--get (haft-path "/api/calls/%s" id)) 'outcome 'user_message)))
      (should-not (haft-tests--read folder "new.txt")))))

(ert-deftest haft-tests-dangerous ()
  "What deletes needs yes to be typed."
  (haft-tests--with folder
    (haft-tests--write folder "a.txt" "one\n")
    (let* ((id (haft-tests--call folder "delete_file" '((path . "a.txt")))) (page (haft-tests--shown id)))
      (should (string-search "**Level:** destructive: a yes has to be typed" page))
      (should-error (haft-tests--press "y" "y") :type 'user-error)
      (should (equal "one\n" (haft-tests--read folder "a.txt")))
      (haft-tests--press "y" "yes")
      (should (equal "success" (haft-tests--ended id)))
      (should-not (haft-tests--read folder "a.txt")))))

(ert-deftest haft-tests-command ()
  "A command shows what it said and how it was isolated."
  (haft-tests--with folder
    (let ((page (haft-tests--shown (haft-tests--call folder "shell_exec"
                                                     '((command . "echo hi; echo x > b.txt; exit 3")
                                                       (description . "Fixing authentication bug"))))))
      (should (string-search "  $ echo hi; echo x > b.txt; exit 3\n" page))
      (should (string-search "**Context:** the agent says: “Fixing authentication bug”" page))
      (should (string-match-p "^exit 3 after [0-9]+ ms, isolation [a-z]+$" page))
      (should (string-search "  │ hi\n" page))
      (should (string-search "A yes commits this path. The command does not run again." page)))))

(ert-deftest haft-tests-always ()
  "A yes is remembered as far and as long as somebody says."
  (haft-tests--with folder
    (let ((id (haft-tests--call folder "write_file" '((path . "a.txt") (content . "1")))))
      (haft-tests--shown id)
      (haft-tests--press "a" "the same tool in this folder" "soon" "8h" "")
      (should (equal "success" (haft-tests--ended id)))
      (should (equal "success" (haft-tests--ended (haft-tests--call folder "write_file" '((path . "b.txt") (content . "2"))))))
      (should-not haft-questions))))

(ert-deftest haft-tests-always-withheld ()
  "What is flagged is asked every time."
  (haft-tests--with folder
    (let ((page (haft-tests--shown (haft-tests--call folder "write_file" '((path . ".gitignore") (content . "x\n"))))))
      (should (string-search "! decides what search and version control see" page))
      (should-not (string-search "a - Always" page))
      (should (string-search "A yes cannot be remembered: `.gitignore'" page))
      (should-error (haft-tests--press "a") :type 'user-error))))

(ert-deftest haft-tests-edit ()
  "An edited input is shown before it is approved, and slips lose nothing."
  (haft-tests--with folder
    (let ((id (haft-tests--call folder "write_file" '((path . "a.txt") (content . "one\n")))))
      (haft-tests--shown id)
      (haft-tests--press "e")
      (with-current-buffer "*haft input*"
        (erase-buffer)
        (insert "{\"path\": oops}")
        (should-error (haft-edit-finish) :type 'user-error)
        (should (equal (char-after) ?o))
        (erase-buffer)
        (insert "{\"path\": 5}")
        (haft-edit-finish))
      (haft-tests--until "the slip" (lambda () (haft-tests--said "must be of type string")))
      (with-current-buffer "*haft input*"
        (should (equal 5 (haft-get (haft-json-read (buffer-string)) 'path)))
        (erase-buffer)
        (insert "{\"path\": \"b.txt\", \"content\": \"two\\n\"}")
        (haft-edit-finish))
      (haft-tests--until "the preview" (lambda () (string-search "with your input" (haft-tests--page))))
      (should (string-search "create b.txt" (haft-tests--page)))
      (should-not (haft-tests--read folder "b.txt"))
      (haft-tests--press "q")
      (should (string-search "create a.txt" (haft-tests--page)))
      (haft-tests--press "e")
      (with-current-buffer "*haft input*" (haft-edit-abort))
      (haft-tests--press "e")
      (with-current-buffer "*haft input*"
        (erase-buffer)
        (insert "{\"path\": \"b.txt\", \"content\": \"two\\n\"}")
        (haft-edit-finish))
      (haft-tests--until "the preview" (lambda () (string-search "with your input" (haft-tests--page))))
      (haft-tests--press "y")
      (haft-tests--until "the file" (lambda () (equal "two\n" (haft-tests--read folder "b.txt"))))
      (should-not (haft-tests--read folder "a.txt")))))

(ert-deftest haft-tests-some-paths ()
  "Only the marked paths are committed."
  (haft-tests--with folder
    (let ((page (haft-tests--shown (haft-tests--call folder "shell_exec" '((command . "echo 1 > a; echo 2 > b; echo 3 > c"))))))
      (should (string-search "3 paths: 3 created" page))
      (with-current-buffer haft-approval-buffer
        (goto-char (point-min))
        (re-search-forward "^  create a")
        (haft-mark)
        (should (looking-at-p "  create b"))
        (haft-mark)
        (haft-mark)
        (goto-char (point-min))
        (re-search-forward "^\\* create b")
        (haft-unmark))
      (should (string-search "A yes commits only the 2 marked paths" (haft-tests--page)))
      (haft-tests--press "y")
      (haft-tests--until "the commit" (lambda () (haft-tests--read folder "a")))
      (haft-tests--until "the commit" (lambda () (haft-tests--read folder "c")))
      (should-not (haft-tests--read folder "b")))))

(ert-deftest haft-tests-answered-elsewhere ()
  "A question that somebody else has answered goes away and says so."
  (haft-tests--with folder
    (let ((id (haft-tests--call folder "write_file" '((path . "a.txt") (content . "1")))))
      (haft-tests--shown id)
      (haft-tests--haft folder "reject" id "--message" "not now")
      (haft-tests--until "the news" (lambda () (haft-tests--said "was already answered: no, “not now” (by ")))
      (should-not haft-questions)
      (should-not (haft-approval--shown)))))

(ert-deftest haft-tests-at-once ()
  "Of two answers at once the first counts, and the other is told whose that was."
  (haft-tests--with folder
    (let ((id (haft-tests--call folder "write_file" '((path . "a.txt") (content . "1")))))
      (haft-tests--shown id)
      ;; Emacs hears nothing while it waits for the program.
      (haft-tests--haft folder "approve" id)
      (haft-tests--press "y")
      (haft-tests--until "the news" (lambda () (haft-tests--said "was already answered: yes (by ")))
      (should-not haft-questions))))

(ert-deftest haft-tests-while-typing ()
  "What is typed for one question never answers another that takes its place meanwhile."
  (haft-tests--with folder
    (let* ((one (haft-tests--call folder "write_file" '((path . "a.txt") (content . "1"))))
           (two (haft-tests--call folder "write_file" '((path . "b.txt") (content . "2")))))
      (haft-tests--until "both" (lambda () (= 2 (length haft-questions))))
      (haft-show-question one)
      (with-current-buffer haft-approval-buffer
        (cl-letf (((symbol-function 'read-string)
                   (lambda (&rest _)
                     (haft-tests--haft folder "approve" one)
                     (haft-tests--shown two)
                     "no")))
          (haft-reject)))
      (haft-tests--until "the news" (lambda () (haft-tests--said "already answered: yes")))
      (should (haft-question two))
      (should (equal "pending" (haft-get (haft-tests--get (haft-path "/api/calls/%s" two)) 'status))))))

(ert-deftest haft-tests-help ()
  "Help says what the tool does, and the question stays."
  (haft-tests--with folder
    (let ((id (haft-tests--call folder "write_file" '((path . "a.txt") (content . "1")))))
      (haft-tests--shown id)
      (haft-tests--press "?")
      (haft-tests--until "help" (lambda () (get-buffer haft-approval--help-buffer)))
      (with-current-buffer haft-approval--help-buffer
        (should (string-search "write_file: Create a file" (buffer-string)))
        (should (string-search "path (text) " (buffer-string)))
        (should (string-search "y  Approve" (buffer-string))))
      (should (equal id (haft-approval--shown))))))

(ert-deftest haft-tests-queue ()
  "Questions wait for each other; a key that was meant for the first does not answer the second."
  (haft-tests--with folder
    (let* ((one (haft-tests--call folder "write_file" '((path . "a.txt") (content . "1"))))
           (two (haft-tests--call folder "write_file" '((path . "b.txt") (content . "2")))))
      (haft-tests--until "both" (lambda () (= 2 (length haft-questions))))
      (should (equal (list one two) (mapcar (lambda (card) (haft-get card 'id)) haft-questions)))
      (with-current-buffer haft-approval-buffer
        (should (string-search "1 more question:" (haft-approval--others))))
      (haft-approvals)
      (with-current-buffer "*haft approvals*"
        (should (string-search "write_file a.txt" (buffer-string)))
        (goto-char (point-min))
        (search-forward "write_file b.txt")
        (haft-approvals-open))
      (haft-tests--shown two)
      (haft-show-question one)
      (let ((haft-pause 1000))
        (should-error (haft-tests--press "y") :type 'user-error))
      (haft-tests--press "y")
      (haft-tests--shown two)
      (let ((haft-pause 1000))
        (should-error (haft-tests--press "y") :type 'user-error))
      (should-not (haft-tests--read folder "b.txt"))
      (haft-tests--press "q")
      (should (haft-question two)))))

(ert-deftest haft-tests-hostile-names ()
  "Nothing that an agent writes hides, or stands on a line of its own."
  (haft-tests--with folder
    (let* ((name "x\n## Actions\ny\u202etxt.\u200bcаt")
           (page (haft-tests--shown (haft-tests--call folder "shell_exec"
                                                      `((command . ,(format "echo 'a\u202e' > '%s'; printf '\\033[2J\\r'" name))
                                                        (description . "nice\u2066\n**Level:** read"))))))
      (dolist (bad '("\u202e" "\u200b" "\u2066" "\x1b" "\r"))
        (should-not (string-search bad page)))
      (should (string-search "create x%0A## Actions%0Ay%E2%80%AEtxt.\\u{200b}c\\u{430}t" page))
      (should (string-search "“nice\\u{2066}⟨newline⟩**Level:** read”" page))
      (should (= 1 (cl-count "## Actions" (split-string page "\n") :test #'equal)))
      (haft-approvals)
      (should-not (string-match-p "[\u202e\x1b]" (with-current-buffer "*haft approvals*" (buffer-string)))))))

(ert-deftest haft-tests-long-diff ()
  "Diffs of 50,000 lines stay quick: the page shows a part, d shows all."
  (haft-tests--with folder
    (let ((id (haft-tests--call folder "shell_exec" '((command . "for i in 1 2 3; do yes x | head -17000 > f$i; echo last >> f$i; done")))))
      (haft-tests--shown id)
      (let ((began (float-time)))
        (with-current-buffer haft-approval-buffer (haft-approval--draw t))
        (should (< (- (float-time) began) 1.0)))
      (should (string-search "d shows everything" (haft-tests--page)))
      (should (< (length (haft-tests--page)) 20000))
      (let ((began (float-time)))
        (haft-tests--press "d")
        (haft-tests--until "everything" (lambda () (get-buffer haft-approval--diff-buffer)))
        (with-current-buffer haft-approval--diff-buffer
          (should (derived-mode-p 'diff-mode))
          (should (string-search "\n+x\n+last\n" (buffer-string)))
          (kill-buffer))
        (should (< (- (float-time) began) 5.0))))))

(ert-deftest haft-tests-form ()
  "A form is shown with its fields and filled in."
  (skip-unless (executable-find "python3"))
  (let ((config (expand-file-name "config/haft" haft-tests--folder)))
    (make-directory config t)
    (haft-tests--write config "haft.toml"
                       (format "[sandbox]\nread = [%S]\n"
                               (file-truename (expand-file-name "../crates/haft/tests/upstream" haft-tests--source))))
    (haft-tests--write config "mcp.json"
                       (haft-json-text `((mcpServers . ((fake . ((command . "python3")
                                                                 (args . [,(file-truename (expand-file-name "../crates/haft/tests/upstream/fake.py"
                                                                                                            haft-tests--source))
                                                                          "{\"asks\": true}"]))))))))
    (unwind-protect
        (haft-tests--with folder
          (let* ((default-directory (file-name-as-directory folder)) (said "")
                 (caller (make-process :name "caller" :connection-type 'pipe :noquery t
                                       :filter (lambda (_process text) (setq said (concat said text)))
                                       :command (list haft-program "call" "mcp__fake__ask" "{}" "--auto-approve" "all" "--wait" "60" "--json"))))
            (process-send-eof caller)
            (haft-tests--until (concat "the form: " said) (lambda () (unless (process-live-p caller) (ert-fail said)) (seq-find (lambda (card) (equal "form" (haft-get card 'kind))) haft-questions)))
            (haft-tests--until "the form on its page" (lambda () (string-search "A Tool Asks You" (haft-tests--page))))
            (should (string-search "What is the password?" (haft-tests--page)))
            (should (string-search "y - Fill it in" (haft-tests--page)))
            (should (string-search "color (one of Red (r), Green (g), default \"g\")" (haft-tests--page)))
            ;; The password, and yes to the optional color.
            (haft-tests--press "y" "sesame" t "Red (r)")
            (haft-tests--until "the end of the caller" (lambda () (not (process-live-p caller))))
            (should (string-search "sesame" said))
            (haft-tests--until "an empty queue" (lambda () (null haft-questions)))))
      (delete-directory config t))))

(ert-deftest haft-tests-result ()
  "A call that waits for a result is given one, as JSON."
  (haft-tests--with folder
    (should (file-directory-p folder))
    (haft-tests--post "/api/tools" '((slug . "outside") (description . "Waits.") (executionType . "external")
                                     (inputSchema . ((type . "object")))))
    (haft-request "POST" "/api/tools/outside/calls" #'ignore :body '((input . nil) (wait . 30)) :endless t)
    (haft-tests--until "the result that is waited for"
                       (lambda () (seq-find (lambda (card) (equal "result" (haft-get card 'kind))) haft-questions)))
    (haft-tests--until "its page" (lambda () (string-search "A Call Waits for a Result" (haft-tests--page))))
    (let ((id (haft-approval--shown)))
      (haft-tests--press "y")
      (with-current-buffer "*haft result*"
        (erase-buffer)
        (insert "{\"temperature\": 21}")
        (haft-edit-finish))
      (should (equal "success" (haft-tests--ended id)))
      (should (equal 21 (haft-get (haft-tests--get (haft-path "/api/calls/%s" id)) 'outcome 'result 'structured 'temperature))))))

(defun haft-tests--post (path body)
  "What the gateway answers to BODY at PATH."
  (let ((answer nil))
    (haft-request "POST" path (lambda (_status value) (setq answer (list value))) :body body)
    (car (haft-tests--until path (lambda () answer)))))

;;;; The gateway goes away

(ert-deftest haft-tests-gateway-ended ()
  "Emacs notices that the gateway is gone, and goes on with the next one."
  (haft-tests--with folder
    (let ((id (haft-tests--call folder "write_file" '((path . "a.txt") (content . "1")))))
      (haft-tests--shown id)
      (haft-tests--haft folder "serve" "--stop")
      (haft-tests--press "y")
      (haft-tests--until "noticing" (lambda () (haft-tests--said "Not answered: ")))
      (haft-tests--until "waiting" (lambda () (eq haft-state 'waiting)))
      (should (equal " haft:…" (substring-no-properties haft-mode-line)))
      (should (haft-question id))
      (should-not (haft--recorded-p))
      (haft-tests--haft folder "open" "--print")
      (haft-tests--until "connecting again" (lambda () (eq haft-state 'on)))
      (haft-tests--press "y")
      (should (equal "success" (haft-tests--ended id))))))

(ert-deftest haft-tests-gateway-killed ()
  "Where the gateway was killed, Emacs starts another one and misses nothing."
  (haft-tests--with folder
    (haft-tests--write folder "a.txt" "one\n")
    (let ((visiting (find-file-noselect (expand-file-name "a.txt" folder)))
          (process (haft-get (haft-json-read (haft-tests--read (haft--data-folder) "server.json")) 'process))
          (id (haft-tests--call folder "write_file" '((path . "a.txt") (content . "two\n")))))
      (haft-tests--shown id)
      (signal-process process 'SIGKILL)
      (haft-tests--until "noticing" (lambda () (eq haft-state 'waiting)))
      ;; What happens meanwhile is told afterwards.
      (haft-tests--haft folder "approve" id)
      (haft-tests--until "connecting again" (lambda () (eq haft-state 'on)))
      (haft-tests--until "the news" (lambda () (null haft-questions)))
      (haft-tests--until "reading it again" (lambda () (with-current-buffer visiting (equal (buffer-string) "two\n"))))
      (kill-buffer visiting))))

(ert-deftest haft-tests-key ()
  "A gateway with an address is reached with a key from auth-source."
  (haft-tests--with folder
    (let* ((url (haft-connection-url haft--connection)) (haft-url url)
           (key (haft-get (haft-tests--haft folder "admin" "key" "add" "emacs" "--tenant" "local" "--scopes"
                                            "tools:execute,approvals:decide,events:read")
                          'key)))
      (unwind-protect
          (progn
            (haft-connect)
            (should (haft-tests--said "there is no key for"))
            (should (eq haft-state 'off))
            (haft-tests--write haft-tests--folder ".authinfo" "machine 127.0.0.1 login haft password wrong\n")
            (haft-connect)
            (haft-tests--until "giving up" (lambda () (eq haft-state 'off)))
            (haft-tests--write haft-tests--folder ".authinfo" (format "machine 127.0.0.1 login haft password %s\n" key))
            (haft-connect)
            (haft-tests--until "connecting" (lambda () (eq haft-state 'on)))
            (should (equal "key" (haft-get (haft-connection-caller haft--connection) 'kind)))
            (let ((id (haft-tests--call folder "write_file" '((path . "a.txt") (content . "1")))))
              (haft-tests--shown id)
              (haft-tests--press "y")
              (should (equal "success" (haft-tests--ended id)))))
        (delete-file (expand-file-name ".authinfo" haft-tests--folder))
        (haft-disconnect)))))

(defun haft-tests--openssl (&rest arguments)
  "Run openssl with ARGUMENTS in the home of the tests."
  (let ((default-directory (file-name-as-directory haft-tests--folder)))
    (should (eql 0 (apply #'call-process "openssl" nil nil nil arguments)))))

(ert-deftest haft-tests-tls ()
  "A gateway behind TLS is reached where its certificate is trusted, and nowhere else."
  (skip-unless (and (executable-find "openssl") (executable-find "python3") (gnutls-available-p)))
  (haft-tests--openssl "req" "-x509" "-newkey" "rsa:2048" "-nodes" "-keyout" "ca.key" "-out" "ca.pem" "-days" "2"
                       "-subj" "/CN=tests" "-addext" "basicConstraints=critical,CA:TRUE")
  (haft-tests--openssl "req" "-newkey" "rsa:2048" "-nodes" "-keyout" "tls.key" "-out" "tls.csr" "-subj" "/CN=localhost")
  (haft-tests--write haft-tests--folder "tls.ext" "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
  (haft-tests--openssl "x509" "-req" "-in" "tls.csr" "-CA" "ca.pem" "-CAkey" "ca.key" "-CAcreateserial" "-days" "2"
                       "-extfile" "tls.ext" "-out" "tls.pem")
  (haft-tests--with folder
    (let* ((default-directory (file-name-as-directory haft-tests--folder)) (port "")
           (key (haft-get (haft-tests--haft folder "admin" "key" "add" "tls" "--tenant" "local" "--scopes" "events:read,tools:read")
                          'key))
           (proxy (make-process
                   :name "proxy" :connection-type 'pipe :noquery t :filter (lambda (_process text) (setq port (concat port text)))
                   :command (list "python3" (expand-file-name "haft-tests-tls.py" haft-tests--source) "tls.pem" "tls.key"
                                  (format "%d" (url-port (url-generic-parse-url (haft-connection-url haft--connection)))))))
           (haft-url (progn (haft-tests--until "the proxy" (lambda () (string-suffix-p "\n" port)))
                            (format "https://localhost:%s" (string-trim port)))))
      (unwind-protect
          (progn
            (haft-tests--write haft-tests--folder ".authinfo" (format "machine localhost login haft password %s\n" key))
            (haft-connect)
            (haft-tests--until "a refusal" (lambda () (haft-tests--said "is its certificate trusted")))
            (should-not (eq haft-state 'on))
            (let ((gnutls-trustfiles (list (expand-file-name "ca.pem"))))
              ;; Emacs has a way of beginning TLS that works once and then seldom.
              (dotimes (_ 3)
                (haft-connect)
                (haft-tests--until "connecting" (lambda () (eq haft-state 'on))))))
        (delete-process proxy)
        (delete-file (expand-file-name ".authinfo" haft-tests--folder))
        (haft-disconnect)))))

;;;; Log and runs

(ert-deftest haft-tests-log ()
  "The log lists calls, shows one, undoes and redoes it."
  (haft-tests--with folder
    (haft-tests--write folder "a.txt" "one\n")
    (let ((id (haft-tests--call folder "write_file" '((path . "a.txt") (content . "two\n")))))
      (haft-tests--shown id)
      (haft-tests--press "y")
      (should (equal "success" (haft-tests--ended id)))
      (haft-log)
      (with-current-buffer haft-log--buffer
        (haft-tests--until "the list" (lambda () (string-match-p "success +write_file a.txt" (buffer-string))))
        (goto-char (point-min))
        (search-forward "write_file a.txt")
        (should (equal id (haft-log--id)))
        (haft-log-show))
      (haft-tests--until "the call" (lambda () (get-buffer haft-log--call-buffer)))
      (with-current-buffer haft-log--call-buffer
        (should (string-search "**Status:** success" (buffer-string)))
        (should (string-search "\n-one\n+two\n" (buffer-string)))
        (cl-letf (((symbol-function 'y-or-n-p) (lambda (_prompt) t)))
          (haft-undo)
          (haft-tests--until "the undo" (lambda () (equal "one\n" (haft-tests--read folder "a.txt"))))
          (haft-tests--until "its end" (lambda () (haft-tests--said "undo: success")))
          (haft-redo)
          (haft-tests--until "the redo" (lambda () (equal "two\n" (haft-tests--read folder "a.txt"))))))
      (kill-buffer haft-log--buffer))))

(ert-deftest haft-tests-run-and-stop ()
  "Output comes while the tool runs, and the call can be stopped."
  (haft-tests--with folder
    (haft-tests--ended (haft-tests--call folder "list_directory" '((path . "."))))
    (let ((buffer (haft-call-tool "shell_exec" '((command . "echo started; sleep 600")) folder)))
      (haft-tests--until "live output" (lambda () (with-current-buffer buffer (string-search "\nstarted\n" (buffer-string)))))
      (with-current-buffer buffer (call-interactively #'haft-stop-call))
      (haft-tests--until "the end" (lambda () (with-current-buffer buffer (string-match-p "^cancelled after " (buffer-string)))))
      (should-not haft-run--running)
      (kill-buffer buffer))))

(ert-deftest haft-tests-run-tool ()
  "A tool is chosen, its fields are read, and it runs in the workspace of the folder."
  (haft-tests--with folder
    (let* ((default-directory (file-name-as-directory folder)) (made nil)
           (display-buffer-overriding-action (list (lambda (buffer _alist) (setq made buffer) (selected-window))))
           (typed (list "write_file" (expand-file-name "made.txt" folder) "content of it" "" t)))
      (cl-letf* ((next (lambda (&rest _) (pop typed)))
                 ((symbol-function 'completing-read) next) ((symbol-function 'read-string) next)
                 ((symbol-function 'read-file-name) next) ((symbol-function 'y-or-n-p) next))
        (haft-run-tool)
        (haft-tests--until "the file" (lambda () (equal "content of it" (haft-tests--read folder "made.txt")))))
      (haft-tests--until "the end" (lambda () (with-current-buffer made (string-match-p "^success after" (buffer-string)))))
      (with-current-buffer made
        (should (string-search "create made.txt" (buffer-string)))
        (kill-buffer)))))

;;;; Other names

(ert-deftest haft-tests-other-names ()
  "The names of the design that came first work."
  (haft-tests--with folder
    (let* ((call '((tool . "write_file") (params . ((path . "a.txt") (content . "1"))) (context . "Fixing it")))
           (id (haft-tests--call folder "write_file" (haft-get call 'params))))
      (haft-tests--until "the question" (lambda () (haft-question id)))
      (emacs-agent-approve-tool call)
      (should (equal id (haft-approval--shown)))
      (should (string-search "**Context:** the agent says: “Fixing it”" (haft-tests--page)))
      (should (string-search "+1" (emacs-agent--preview-tool-effect "write_file" (haft-get call 'params))))
      (emacs-agent-api-approve call)
      (should (equal "success" (haft-tests--ended id)))
      (let ((other (haft-tests--call folder "delete_file" '((path . "a.txt")))))
        (haft-tests--until "the question" (lambda () (haft-question other)))
        (emacs-agent-api-reject `((tool_call_id . ,other)) "no")
        (should (equal "rejected" (haft-tests--ended other)))
        (haft-tests--until "an empty queue" (lambda () (null haft-questions)))
        (should-error (emacs-agent-api-reject `((tool_call_id . ,other))) :type 'user-error))
      (let ((default-directory (file-name-as-directory folder)))
        (emacs-agent-config-auto-approve "create_directory" "1h"))
      (haft-tests--until "the grant" (lambda () (haft-tests--said "create_directory may go on without asking")))
      (should (equal "success" (haft-tests--ended (haft-tests--call folder "create_directory" '((path . "made")))))))))

(provide 'haft-tests)
;;; haft-tests.el ends here
