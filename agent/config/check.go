package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Check reads all sources as Load does, and also checks what their values refer to: stores, programs and files. root is
// the directory that stands for "/", which is the host itself. Mistakes prevent runs. Warnings do not: they report what
// the configuration discloses to other users, and settings without effect.
func Check(s Sources, root string) (mistakes, warnings diag.List) {
	c, err := Load(s)
	mistakes.AddError(diag.Pos{File: s.File}, err)
	k := check{root: root, engine: "native"}
	for _, v := range s.values() {
		k.value(v)
	}
	k.command(s)
	mistakes = append(mistakes, k.mistakes...)
	if c.File.Path != "" {
		k.warnings = append(k.warnings, private(c.File.Path, 0o022, "the configuration", "0640")...)
	}
	return sorted(mistakes), sorted(k.warnings)
}

func sorted(list diag.List) diag.List {
	list, _ = list.Err().(diag.List) //nolint:errorlint // Err returns a List or nil
	return list
}

// check collects the errors of values.
type check struct {
	root               string
	engine             string
	runs               []value // values of engine_command
	mistakes, warnings diag.List
}

// value checks what a value refers to. Load checks its kind.
func (c *check) value(v value) {
	switch v.key.Name {
	case "store", "mirrors":
		c.store(v)
	case "hostname.convention":
		_, err := grains.NewConvention(v.text)
		c.mistake(v, err)
	case "engine":
		c.engine = v.text
	case "engine_command":
		if v.item == 0 {
			c.runs = append(c.runs, v)
		}
	case "metrics.textfile":
		c.metrics(v)
	case "notify.webhook.url":
		if u, err := url.Parse(v.text); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			c.warnings.Add(v.at, "notify.webhook.url is not an http or https URL").
				WithHint(diag.Config, "write it as https://host/path")
		}
	case "notify.webhook.secret_file":
		for _, d := range private(v.text, 0o077, v.key.Name, "0600") {
			d.Pos = v.at
			c.warnings = append(c.warnings, d)
		}
	case "notify.command", "event_command":
		if v.item == 0 {
			c.warnings.AddError(v.at, named(v, c.program(v)))
		}
	}
}

func (c *check) mistake(v value, err error) { c.mistakes.AddError(v.at, named(v, err)) }

// named adds the key of a value to an error.
func named(v value, err error) error {
	if err == nil {
		return nil
	}
	return diag.Config.Hint(fmt.Errorf("%s: %w", v.key.Name, err), "%s", diag.HintOf(err))
}

// store checks the URL of a store. Credentials in it are a warning, which does not show them; runs refuse such a URL.
func (c *check) store(v value) {
	if shown := redact.URLs(v.text); shown != v.text {
		c.warnings.Add(v.at, "store %s has credentials in its URL, which is remembered and shown", shown).
			WithHint(diag.Config, "remove them; credentials come from the environment, see docs/configuration.md#stores")
		return
	}
	_, err := stores.Open(v.text, stores.Options{})
	c.mistake(v, err)
}

// metrics checks the file for the node exporter. Runs continue without the file, and note that.
func (c *check) metrics(v value) {
	dir := filepath.Join(c.root, filepath.Dir(v.text))
	is, err := walk.Directory(dir)
	switch {
	case filepath.Ext(v.text) != ".prom":
		c.warnings.Add(v.at, "metrics.textfile is %q, which the node exporter does not read",
			v.text).WithHint(diag.Config, "let it end in .prom")
	case !filepath.IsAbs(v.text):
		c.warnings.Add(v.at, "metrics.textfile is %q, which names no place",
			v.text).
			WithHint(diag.Config, "write the whole path, such as /var/lib/prometheus/node-exporter/"+filepath.Base(v.text))
	case err != nil:
		c.warnings.AddError(v.at, named(v, err))
	case !is:
		c.warnings.Add(v.at, "metrics.textfile is in %s, which is not a directory",
			filepath.Dir(v.text)).WithHint(diag.Config, "mkdir -p "+dir)
	}
}

// command checks the command of the engine. The native engine has none.
func (c *check) command(s Sources) {
	if c.engine == "native" {
		return
	}
	for _, v := range c.runs {
		c.mistake(v, c.program(v))
	}
	if len(c.runs) == 0 && c.engine == "command" {
		c.mistakes.Add(s.at("engine"),
			"the engine `command` has no command").WithHint(diag.Config,
			"set engine_command, such as engine_command: [/usr/local/bin/converge]")
	}
}

// program returns an error if a program does not exist on this host. It checks nothing below another root, where the
// program may be installed before it is needed.
func (c *check) program(v value) error {
	if filepath.Clean(c.root) != "/" {
		return nil
	}
	_, err := exec.LookPath(v.text)
	switch {
	case err == nil:
		return nil
	case !strings.Contains(v.text, "/"):
		return diag.Config.Hint(fmt.Errorf("there is no program %s in %s", v.text, os.Getenv("PATH")),
			"install it, or write its whole path")
	case errors.Is(err, os.ErrNotExist):
		return diag.Config.Hint(fmt.Errorf("there is no program %s", v.text), "install it, or correct the path")
	}
	return diag.Config.Hint(fmt.Errorf("%s cannot be started: %w", v.text, errors.Unwrap(err)), "chmod +x %s", v.text)
}
