;;; emacs-agent.el --- Other names for the commands of haft  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Configurations that say emacs-agent-… go on working.

;;; Code:

(require 'haft)

;;;###autoload
(defalias 'emacs-agent-approve-tool #'haft-approve-tool)
;;;###autoload
(defalias 'emacs-agent-api-approve #'haft-api-approve)
;;;###autoload
(defalias 'emacs-agent-api-reject #'haft-api-reject)
;;;###autoload
(defalias 'emacs-agent-config-auto-approve #'haft-auto-approve)
;;;###autoload
(defalias 'emacs-agent-show-tool-help #'haft-show-tool-help)
;;;###autoload
(defalias 'emacs-agent--preview-tool-effect #'haft-preview-tool-effect)

(provide 'emacs-agent)
;;; emacs-agent.el ends here
