;;; haft-client.el --- Talk to a gateway of haft  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Requests and the stream of events, over one small HTTP client.  It is not
;; `url': that keeps cookies on disk, asks for passwords by itself, and has no
;; streams.  Nothing here waits: every answer comes to a callback.

;;; Code:

(require 'auth-source)
(require 'cl-lib)
(require 'gnutls)
(require 'haft-text)
(require 'nsm)
(require 'url-parse)
(require 'url-util)

(defgroup haft nil
  "Answer the questions of AI agents, and see what they did."
  :group 'tools
  :prefix "haft-")

(defcustom haft-program "haft"
  "The program haft, which finds or starts the gateway of this machine."
  :type 'string)

(defcustom haft-url nil
  "The address of a gateway on another machine, or nil for the one of this machine.
Its key is looked up by `auth-source', under the host of the address
and the user `haft'."
  :type '(choice (const :tag "This machine's own" nil) string)
  :risky t)

(defcustom haft-request-seconds 30
  "How long a request may take that does not run a tool."
  :type 'number)

(defvar haft-event-functions nil
  "Functions that are called with the name and the data of each event.")

(defvar haft-connected-functions nil
  "Functions that are called without arguments whenever events come in again.")

(defvar haft-state-functions nil
  "Functions that are called without arguments when `haft-state' has changed.")

(cl-defstruct (haft-connection (:constructor haft-connection--make) (:copier nil))
  "A gateway, and who we are there."
  url headers is-known stream last-event (delay 1) timer heard caller problem)

(defvar haft--connection nil
  "The gateway that is used, or nil.")

(defvar haft-state 'off
  "Where the connection stands: `off', `connecting', `on' or `waiting'.")

(defun haft--set-state (state)
  "Note that the connection stands at STATE."
  (unless (eq state haft-state)
    (setq haft-state state)
    (run-hooks 'haft-state-functions)))

;;;; HTTP

(cl-defstruct (haft-exchange (:constructor haft-exchange--make) (:copier nil))
  "A request and its answer."
  process timer request status headers (rest "") framing left on-head on-body on-end)

(defun haft-exchange-end (exchange &optional why)
  "End EXCHANGE, because of WHY if it failed.  Only the first end is told."
  (let ((on-end (haft-exchange-on-end exchange)) (timer (haft-exchange-timer exchange))
        (process (haft-exchange-process exchange)))
    (setf (haft-exchange-on-end exchange) nil)
    (when timer (cancel-timer timer))
    (when process
      (set-process-sentinel process #'ignore)
      (set-process-filter process #'ignore)
      (delete-process process))
    (when on-end (funcall on-end why))))

(defun haft--exchange (url request seconds on-head on-body on-end)
  "Send REQUEST, in bytes, to the host of URL; the answer must end within SECONDS.
ON-HEAD is called with the exchange once status and headers are there,
ON-BODY with each piece of the body, ON-END once with nil, or with a
sentence where the exchange broke."
  (let* ((parsed (url-generic-parse-url url))
         (exchange (haft-exchange--make :request request :on-head on-head :on-body on-body :on-end on-end)))
    (when seconds
      (setf (haft-exchange-timer exchange)
            (run-at-time seconds nil #'haft-exchange-end exchange
                         (format "%s did not answer within %s seconds" url seconds))))
    (condition-case err
        (let ((process (open-network-stream "haft" nil (url-host parsed) (url-port parsed)
                                            :type 'plain :nowait t)))
          (setf (haft-exchange-process exchange) process)
          (set-process-query-on-exit-flag process nil)
          (set-process-coding-system process 'binary 'binary)
          (set-process-filter process (lambda (_process bytes) (haft--received exchange bytes)))
          (set-process-sentinel process (lambda (_process event) (haft--sentinel exchange url event))))
      (error
       ;; The caller learns of it as of any other end: later.
       (run-at-time 0 nil #'haft-exchange-end exchange
                    (format "cannot reach %s: %s" url (error-message-string err)))))
    exchange))

(defun haft--sentinel (exchange url event)
  "Go on with EXCHANGE with URL after EVENT of its process."
  (cond
   ((string-prefix-p "open" event)
    (condition-case err
        (when (haft--secure exchange url)
          (process-send-string (haft-exchange-process exchange) (haft-exchange-request exchange)))
      (error (haft-exchange-end exchange (format "cannot reach %s: %s" url (error-message-string err))))))
   ((eq (haft-exchange-framing exchange) 'close) (haft-exchange-end exchange))
   ((haft-exchange-status exchange)
    (haft-exchange-end exchange (format "%s broke off in the middle of its answer" url)))
   ((process-get (haft-exchange-process exchange) 'haft-tls)
    (haft-exchange-end exchange (format "cannot reach %s: TLS failed; is its certificate trusted?" url)))
   (t (haft-exchange-end exchange (format "cannot reach %s: %s" url (string-trim event))))))

(defun haft--secure (exchange url)
  "Whether EXCHANGE with URL can be talked on; begin TLS where that is needed.
TLS begins once the connection stands, and Emacs then tells a second
time that it is open.  Where it begins with the connection, Emacs 28
often never tells."
  (let* ((parsed (url-generic-parse-url url)) (host (url-host parsed)) (process (haft-exchange-process exchange)))
    (cond
     ((not (equal (url-type parsed) "https")))
     ((process-get process 'haft-tls))
     (t
      (process-put process 'haft-tls t)
      (gnutls-negotiate :process process :type 'gnutls-x509pki :hostname host)
      ;; It was quicker than the next event, and nobody has looked at its certificate yet.
      (when (gnutls-peer-status process)
        (or (nsm-verify-connection process host (url-port parsed))
            (error "Its certificate is not trusted")))))))

(defun haft--received (exchange bytes)
  "Take BYTES that came for EXCHANGE."
  (setf (haft-exchange-rest exchange) (concat (haft-exchange-rest exchange) bytes))
  (unless (haft-exchange-status exchange) (haft--read-head exchange))
  (when (and (haft-exchange-status exchange) (haft-exchange-on-end exchange))
    (haft--read-body exchange)))

(defun haft--read-head (exchange)
  "Read the status and the headers of EXCHANGE, if they are there."
  (let* ((rest (haft-exchange-rest exchange)) (end (string-search "\r\n\r\n" rest)))
    (when end
      (let* ((lines (split-string (substring rest 0 end) "\r\n"))
             (status (and (string-match "\\`HTTP/1\\.[01] \\([0-9]\\{3\\}\\)" (car lines))
                          (string-to-number (match-string 1 (car lines)))))
             (headers (delq nil (mapcar (lambda (line)
                                          (when (string-match "\\`\\([^:]+\\):[ \t]*\\(.*\\)\\'" line)
                                            (cons (downcase (match-string 1 line)) (match-string 2 line))))
                                        (cdr lines))))
             (size (cdr (assoc "content-length" headers))))
        (if (null status)
            (haft-exchange-end exchange "the answer is no HTTP; is `haft-url' right?")
          (setf (haft-exchange-rest exchange) (substring rest (+ end 4))
                (haft-exchange-status exchange) status
                (haft-exchange-headers exchange) headers
                (haft-exchange-left exchange) (and size (string-to-number size))
                (haft-exchange-framing exchange)
                (cond ((string-match-p "chunked" (or (cdr (assoc "transfer-encoding" headers)) "")) 'chunked)
                      (size 'length)
                      (t 'close)))
          (funcall (haft-exchange-on-head exchange) exchange))))))

(defun haft--read-body (exchange)
  "Hand on what there is of the body of EXCHANGE."
  (pcase (haft-exchange-framing exchange)
    ('close (haft--hand-on exchange (length (haft-exchange-rest exchange))))
    ('length
     (haft--hand-on exchange (min (haft-exchange-left exchange) (length (haft-exchange-rest exchange))))
     (when (eql 0 (haft-exchange-left exchange)) (haft-exchange-end exchange)))
    ('chunked (while (and (haft-exchange-on-end exchange) (haft--read-chunk exchange))))))

(defun haft--hand-on (exchange size)
  "Give SIZE bytes of what came for EXCHANGE to whoever wants its body."
  (let ((rest (haft-exchange-rest exchange)))
    (setf (haft-exchange-rest exchange) (substring rest size))
    (when (haft-exchange-left exchange) (cl-decf (haft-exchange-left exchange) size))
    (when (> size 0) (funcall (haft-exchange-on-body exchange) (substring rest 0 size)))))

(defun haft--read-chunk (exchange)
  "Read a part of a chunk of EXCHANGE; nil where more has to come first."
  (let ((rest (haft-exchange-rest exchange)))
    (cond
     ((and (haft-exchange-left exchange) (> (haft-exchange-left exchange) 0))
      (unless (string-empty-p rest)
        (haft--hand-on exchange (min (haft-exchange-left exchange) (length rest)))
        t))
     ;; Behind each chunk stands the end of a line, and before each its size.
     ((string-match "\\`\\(?:\r\n\\)?\\([0-9a-fA-F]+\\)[^\r\n]*\r\n" rest)
      (setf (haft-exchange-left exchange) (string-to-number (match-string 1 rest) 16)
            (haft-exchange-rest exchange) (substring rest (match-end 0)))
      (when (eql 0 (haft-exchange-left exchange)) (haft-exchange-end exchange))
      t)
     ((> (length rest) 1000) (haft-exchange-end exchange "the answer is no HTTP") nil))))

(defun haft--request-text (url method path headers body)
  "The bytes of a request: METHOD, PATH of URL, HEADERS and BODY, which are bytes."
  (let ((parsed (url-generic-parse-url url)))
    (dolist (header headers)
      (when (string-match-p "[\r\n]" (cdr header)) (error "A header holds a line end")))
    (concat
     (encode-coding-string
      (concat (format "%s %s HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n"
                      method path (url-host parsed) (url-port parsed))
              (mapconcat (lambda (header) (format "%s: %s\r\n" (car header) (cdr header))) headers "")
              (and body (format "Content-Type: application/json\r\nContent-Length: %d\r\n" (length body)))
              "\r\n")
      'utf-8)
     body)))

(defun haft--json-of (exchange pieces)
  "The value in PIECES, the body of EXCHANGE in bytes."
  (let ((body (apply #'concat (nreverse pieces))))
    (unless (string-empty-p body)
      (condition-case nil
          (haft-json-read (decode-coding-string body 'utf-8))
        (error (list (cons 'error
                           (list (cons 'message
                                       (format "the gateway answered %d with something that is no JSON"
                                               (haft-exchange-status exchange)))
                                 (cons 'code "BROKEN_ANSWER")))))))))

(defun haft--send (url headers method path body callback seconds)
  "Send METHOD PATH to URL with HEADERS and BODY, a value; tell CALLBACK.
It gets the status and the value of the answer.  Where there is no
answer the status is nil and the value a sentence.  SECONDS bounds it."
  (let ((pieces nil) exchange)
    (setq exchange
          (haft--exchange
           url (haft--request-text url method path headers
                                   (and (not (equal method "GET")) (haft-json-write body)))
           seconds #'ignore
           (lambda (bytes) (push bytes pieces))
           (lambda (why)
             (if why (funcall callback nil why nil)
               (let* ((value (haft--json-of exchange pieces))
                      (broken (equal "BROKEN_ANSWER" (haft-get value 'error 'code))))
                 (funcall callback (if broken 0 (haft-exchange-status exchange)) value
                          (haft-exchange-headers exchange)))))))))

;;;; Requests

(cl-defun haft-request (method path callback &key body endless again)
  "Ask the gateway for METHOD PATH with BODY; CALLBACK gets status and value.
A status of nil means that there was no answer, and the value says why.
With ENDLESS it may take as long as it takes.  AGAIN is for a request
that is repeated after signing in."
  (let ((connection haft--connection))
    (if (null connection)
        (run-at-time 0 nil callback nil "haft is not connected; M-x haft-connect")
      (haft--send
       (haft-connection-url connection) (haft-connection-headers connection) method path body
       (lambda (status value _headers)
         (cond
          ((not (eq connection haft--connection)))
          ((and (eql status 401) (null haft-url) (not again))
           (haft--sign-in
            connection
            (lambda (why)
              (if why (funcall callback nil why)
                (haft-request method path callback :body body :endless endless :again t)))))
          (t (funcall callback status value))))
       (unless endless haft-request-seconds)))))

(defun haft-problem (status value)
  "What went wrong, as a sentence; nil if STATUS and VALUE are a good answer."
  (cond ((null status) value)
        ((<= 200 status 299) nil)
        (t (haft-safe-line (or (let ((message (haft-get value 'error 'message)))
                                 (and (stringp message) message))
                               (format "the gateway answered %d" status))))))

(defun haft-path (format &rest parts)
  "FORMAT with PARTS, each written as a part of an address."
  (apply #'format format (mapcar (lambda (part) (url-hexify-string (format "%s" part))) parts)))

(defun haft-get-all (path callback &optional found)
  "Get the whole list at PATH, page by page, and tell CALLBACK.
It gets a sentence or nil, and the members.  FOUND are those so far."
  (haft-request
   "GET" path
   (lambda (status value)
     (let* ((problem (haft-problem status value)) (next (haft-get value 'next))
            (found (append found (haft-items (haft-get value 'items)))))
       (cond (problem (funcall callback problem nil))
             (next (haft-get-all (concat (replace-regexp-in-string "&after=.*\\'" "" path)
                                         "&after=" (url-hexify-string next))
                                 callback found))
             (t (funcall callback nil found)))))))

(defun haft-remember (table key value)
  "Put VALUE under KEY into TABLE, which does not grow without end."
  (when (> (hash-table-count table) 2000) (clrhash table))
  (puthash key value table))

;;;; The program

(defun haft-run-program (arguments callback &optional folder)
  "Run haft with ARGUMENTS in FOLDER; CALLBACK gets its exit code and what it said."
  (unless (executable-find haft-program)
    (user-error "There is no program `%s'; install haft, or set `haft-program'" haft-program))
  (let ((buffer (generate-new-buffer " *haft program*" t))
        (default-directory (file-name-as-directory (or folder (expand-file-name "~")))))
    (make-process
     :name "haft program" :buffer buffer :noquery t :connection-type 'pipe
     :coding 'utf-8 :command (cons haft-program arguments)
     :sentinel (lambda (process _event)
                 (unless (process-live-p process)
                   (let ((said (if (buffer-live-p buffer) (with-current-buffer buffer (buffer-string)) "")))
                     (kill-buffer buffer)
                     (funcall callback (process-exit-status process) said)))))))

(defun haft--json-line (said)
  "The value in the line of SAID that is JSON; nil where there is none."
  (and (string-match "^[[{].*$" said)
       (ignore-errors (haft-json-read (match-string 0 said)))))

(defun haft-program-problem (said)
  "What went wrong, where haft SAID this."
  (haft-safe-line (or (haft-get (haft--json-line said) 'error 'message) (string-trim said))))

;;;; Signing in


(defun haft--data-folder ()
  "Where haft keeps its data, by the rules of the program."
  (expand-file-name
   (or (getenv "HAFT_DATA_DIR")
       (expand-file-name "haft" (let ((named (getenv "XDG_DATA_HOME")))
                                  (if (and named (file-name-absolute-p named)) named "~/.local/share"))))))

(defun haft--recorded-p ()
  "Whether the record is there by which a gateway of this machine is found.
One that ended has taken its record away.  One that was killed has not."
  (file-exists-p (expand-file-name "server.json" (haft--data-folder))))

(defun haft--sign-in (connection callback)
  "Find the gateway for CONNECTION and say who we are there.
CALLBACK gets nil, or why that was not possible."
  (if haft-url
      (haft--sign-in-by-key connection callback)
    (haft-run-program
     '("open" "--print" "--json")
     (lambda (code said)
       (let ((told (and (eql code 0) (haft--json-line said))))
         (if (null told)
             (funcall callback (format "haft open: %s" (haft-program-problem said)))
           (haft--sign-in-by-link connection (haft-get told 'url) (haft-get told 'signIn) callback)))))))

(defun haft--sign-in-by-key (connection callback)
  "Take the key for CONNECTION from `auth-source', and tell CALLBACK."
  (let* ((parsed (url-generic-parse-url haft-url)) (host (url-host parsed))
         (known (car (auth-source-search :host host :user "haft" :max 1 :require '(:secret))))
         (key (plist-get known :secret)))
    (setf (haft-connection-url connection) (replace-regexp-in-string "/+\\'" "" haft-url))
    (if (null key)
        (funcall callback (format "there is no key for %s; add to ~/.authinfo.gpg: machine %s login haft password KEY"
                                  haft-url host))
      (setf (haft-connection-headers connection)
            `(("Authorization" . ,(concat "Bearer " (if (functionp key) (funcall key) key)))))
      (funcall callback nil))))

(defun haft--sign-in-by-link (connection url link callback)
  "Sign CONNECTION in at URL by LINK, which counts once, and tell CALLBACK."
  (haft--send
   url nil "POST" "/api/sign-in" `((link . ,link))
   (lambda (status value headers)
     (let ((cookie (cdr (assoc "set-cookie" headers))) (problem (haft-problem status value)))
       (cond
        (problem (funcall callback problem))
        ((not (and cookie (string-match "\\`haft=[^;]*" cookie)))
         (funcall callback (format "%s has let nobody in" url)))
        (t
         (setf (haft-connection-url connection) url
               (haft-connection-headers connection)
               `(("Cookie" . ,(match-string 0 cookie)) ("X-CSRF-Token" . ,(haft-get value 'csrf))))
         (funcall callback nil)))))
   haft-request-seconds))

;;;; Events

(defconst haft--longest-delay 30 "The longest pause before connecting again, in seconds.")
(defconst haft--longest-silence 45 "After so many seconds of silence a stream is taken for dead.")

(defun haft-client-start ()
  "Connect to the gateway, starting one on this machine where there is none."
  (haft-client-stop)
  (setq haft--connection (haft-connection--make))
  (haft--begin haft--connection))

(defun haft-client-stop ()
  "Leave the gateway."
  (when-let ((connection haft--connection))
    (setq haft--connection nil)
    (when (haft-connection-timer connection) (cancel-timer (haft-connection-timer connection)))
    (when (haft-connection-stream connection) (haft-exchange-end (haft-connection-stream connection))))
  (haft--set-state 'off))

(defun haft--begin (connection)
  "Sign CONNECTION in, and listen."
  (haft--set-state 'connecting)
  (condition-case err
      (haft--sign-in connection
                     (lambda (why)
                       (when (eq connection haft--connection)
                         (cond ((null why) (haft--who-am-i connection))
                               ;; Nothing but a key is missing, and that does not come by itself.
                               (haft-url (haft--give-up why))
                               (t (haft--try-later connection why))))))
    (user-error (haft-client-stop) (signal (car err) (cdr err)))))

(defun haft--who-am-i (connection)
  "Learn who we are for CONNECTION, then listen."
  (haft-request "GET" "/api/me"
                (lambda (status value)
                  (let ((problem (haft-problem status value)))
                    (cond ((memql status '(401 403)) (haft--give-up problem))
                          (problem (haft--try-later connection problem))
                          (t (setf (haft-connection-caller connection) (haft-get value 'caller)
                                   (haft-connection-is-known connection) t)
                             (haft--listen connection)))))
                :again t))

(defun haft--give-up (why)
  "Leave the gateway, and say WHY."
  (haft-client-stop)
  (message "haft: %s" why))

(defun haft--try-later (connection why)
  "Connect CONNECTION again after a while, and say WHY it has to be."
  (when (eq connection haft--connection)
    ;; The same is not said again each time.
    (unless (equal why (haft-connection-problem connection)) (message "haft: %s; trying again" why))
    (setf (haft-connection-problem connection) why)
    (haft--set-state 'waiting)
    (let ((delay (haft-connection-delay connection)))
      (setf (haft-connection-delay connection) (min haft--longest-delay (* 2 delay)))
      (haft--at connection delay #'haft--again))))

(defun haft--at (connection seconds function)
  "Call FUNCTION with CONNECTION in SECONDS, and nothing else that was planned."
  (when (haft-connection-timer connection) (cancel-timer (haft-connection-timer connection)))
  (setf (haft-connection-timer connection)
        (run-at-time seconds nil (lambda () (when (eq connection haft--connection)
                                              (funcall function connection))))))

(defun haft--again (connection)
  "Try CONNECTION again.
A gateway of this machine that was ended on purpose stays ended: it is
looked for until somebody starts one."
  (cond ((haft-connection-is-known connection) (haft--listen connection))
        ((or haft-url (haft--recorded-p)) (haft--begin connection))
        (t (haft--try-later connection "no gateway runs"))))

(defun haft--listen (connection)
  "Open the stream of events of CONNECTION, where it was left."
  (let ((last (haft-connection-last-event connection)) (rest "") exchange)
    (setq exchange
          (haft--exchange
           (haft-connection-url connection)
           (haft--request-text (haft-connection-url connection) "GET" "/api/events"
                               `(,@(haft-connection-headers connection)
                                 ("Accept" . "text/event-stream")
                                 ,@(and last `(("Last-Event-ID" . ,last))))
                               nil)
           nil
           (lambda (exchange) (haft--heard connection)
             (when (eql 200 (haft-exchange-status exchange)) (haft--connected connection)))
           (lambda (bytes)
             (haft--heard connection)
             (when (eql 200 (haft-exchange-status exchange))
               (setq rest (haft--read-events connection (concat rest bytes)))))
           (lambda (why) (haft--stream-ended connection exchange why))))
    (setf (haft-connection-stream connection) exchange)
    (haft--heard connection)))

(defun haft--heard (connection)
  "Note that CONNECTION lives."
  (setf (haft-connection-heard connection) (float-time)))

(defun haft--connected (connection)
  "Note that CONNECTION tells what happens."
  (setf (haft-connection-delay connection) 1 (haft-connection-problem connection) nil)
  (haft--set-state 'on)
  (haft--at connection haft--longest-silence #'haft--look-whether-it-lives)
  (run-hooks 'haft-connected-functions))

(defun haft--look-whether-it-lives (connection)
  "Take the stream of CONNECTION for dead if nothing was heard for long."
  (let ((silent (- (float-time) (haft-connection-heard connection))))
    (if (>= silent haft--longest-silence)
        (haft-exchange-end (haft-connection-stream connection) "the gateway says nothing any more")
      (haft--at connection (max 1 (- haft--longest-silence silent)) #'haft--look-whether-it-lives))))

(defun haft--stream-ended (connection exchange why)
  "Go on after the stream EXCHANGE of CONNECTION has ended because of WHY."
  (when (eq connection haft--connection)
    (let ((status (haft-exchange-status exchange)))
      (cond
       ((and (memql status '(401 403)) haft-url)
        (haft--give-up (if (eql status 401) "the gateway does not take this key"
                         "this key may not hear of calls; it needs the scope events:read")))
       (t
        ;; Whoever answers at the old address later may be another one: who we are is said anew.
        (unless (eql status 200) (setf (haft-connection-is-known connection) nil))
        (haft--try-later connection (or why "the gateway has ended the connection")))))))

(defun haft--read-events (connection bytes)
  "Tell the events of CONNECTION in BYTES, and return what is not whole yet."
  (let ((from 0) end)
    (while (and (eq connection haft--connection)
                (setq end (string-search "\n\n" bytes from)))
      (haft--read-event connection (substring bytes from end))
      (setq from (+ end 2)))
    (substring bytes from)))

(defun haft--read-event (connection frame)
  "Tell the event in FRAME, which CONNECTION got as bytes."
  (let ((name "message") (data nil) (id nil))
    (dolist (line (split-string frame "\n"))
      (when (string-match "\\`\\(id\\|event\\|data\\): ?\\(.*\\)\\'" line)
        (let ((value (match-string 2 line)))
          (pcase (match-string 1 line)
            ("id" (setq id value))
            ("event" (setq name value))
            ("data" (push value data))))))
    (when id (setf (haft-connection-last-event connection) id))
    (when data
      (condition-case err
          (run-hook-with-args 'haft-event-functions name
                              (haft-json-read (decode-coding-string (string-join (nreverse data) "\n") 'utf-8)))
        (error (message "haft: an event %s could not be shown: %s"
                        (haft-safe-line name) (error-message-string err)))))))

(provide 'haft-client)
;;; haft-client.el ends here
