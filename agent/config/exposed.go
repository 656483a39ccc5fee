package config

import (
	"net/url"
	"os"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Exposed lists what a configuration shows or gives to others: URLs of stores with credentials in them, a webhook that
// no http(s) client reaches, and files of secrets that other users can read or write. A run goes on with all of these.
func (c Config) Exposed() error {
	var problems diag.List
	at := diag.Pos{File: c.File.Path}
	for _, address := range append([]string{c.Store}, c.Mirrors...) {
		if shown := redact.URLs(address); shown != address {
			problems.Add(at, "store %s has credentials in its URL, which is remembered and shown", shown).
				WithHint("remove them; credentials come from the environment, see docs/configuration.md#stores")
		}
	}
	if hook, err := url.Parse(c.Notify.WebhookURL); c.Notify.WebhookURL != "" && (err != nil || hook.Host == "" || hook.Scheme != "http" && hook.Scheme != "https") {
		problems.Add(at, "notify.webhook.url is no http or https URL").WithHint("write it as https://host/path")
	}
	if file := c.Notify.WebhookSecret; file != "" {
		problems = append(problems, private(file, 0o077, "notify.webhook.secret_file", "0600")...)
	}
	if c.File.Path != "" {
		problems = append(problems, private(c.File.Path, 0o022, "the configuration", "0640")...)
	}
	return problems.Err()
}

// private names a file that others can use, or whose directory others can write.
func private(file string, others os.FileMode, what, mode string) (problems diag.List) {
	info, err := os.Stat(file)
	if os.IsNotExist(err) && what == "the configuration" {
		return nil
	}
	if err != nil {
		problems.Add(diag.Pos{File: file}, "%s cannot be read: %v", what, err)
		return problems
	}
	if got := info.Mode().Perm(); got&others != 0 {
		problems.Add(diag.Pos{File: file}, "%s has mode %#o: other users can read or write it", what, got).WithHint("chmod " + mode + " " + file)
	}
	dir, err := os.Stat(filepath.Dir(file))
	if err != nil {
		problems.Add(diag.Pos{File: file}, "the directory of %s cannot be read: %v", what, err)
		return problems
	}
	if dir.Mode().Perm()&0o022 != 0 && dir.Mode()&os.ModeSticky == 0 {
		problems.Add(diag.Pos{File: file}, "%s lies in a directory that other users can write", what).WithHint("chmod go-w " + filepath.Dir(file))
	}
	return problems
}
