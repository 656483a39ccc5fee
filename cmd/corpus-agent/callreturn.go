package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/report/outputter"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// sendBack passes an answer to the returners that the command line or the minion file names, and returns notes about
// those that failed.
func (c *calling) sendBack(ctx context.Context, o *inspect.Opened, name string, words []string,
	answer session.Answer) (notes []string) {
	ret := value.NewMap("id", o.ID, "jid", time.Now().UTC().Format("20060102150405")+"000000", "fun", name, "fun_args",
		value.Strings(words...), "return", answer.Value, "retcode", answer.Code, "success", true)
	var others []string
	var failed []error
	for _, name := range c.returners(o) {
		sink := c.sink(name, o)
		if sink == nil || o.HasReturner(name) {
			others = append(others, name)
		} else if err := sink(ret); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	for _, err := range append(failed, o.Return(ctx, strings.Join(others, ","), ret)...) {
		note := fmt.Sprintf("the result was not returned: %v", err)
		if hint := diag.HintOf(err); hint != "" && !strings.Contains(note, hint) {
			note += "\n" + diag.HintLines(hint)
		}
		notes = append(notes, note)
	}
	return notes
}

// returners returns the names of the returners.
func (c *calling) returners(o *inspect.Opened) (names []string) {
	if c.salt.returners != "" {
		return strings.Split(c.salt.returners, ",")
	}
	switch named := o.Options.Value("return").(type) {
	case string:
		return strings.Split(named, ",")
	case *value.List:
		for _, item := range named.Items {
			names = append(names, value.Str(item))
		}
	}
	return names
}

// sink returns the returner of Salt with a name that has a meaning on a host without a master, or nil.
func (c *calling) sink(name string, o *inspect.Opened) func(*value.Map) error {
	switch strings.TrimSpace(name) {
	case "syslog":
		return func(ret *value.Map) error { return c.toSyslog(o, ret) }
	case "rawfile_json":
		return func(ret *value.Map) error { return c.toFile(o, ret) }
	case "local_cache":
		return func(*value.Map) error {
			return diag.Notify.Hint(errors.New("there is no cache of jobs"), "`corpus-agent history` shows the runs that "+
				"deployed something, and docs/notify.md what receives their results")
		}
	}
	return nil
}

// returnOption returns an option of a returner, which is a string.
func returnOption(o *inspect.Opened, name, otherwise string) string {
	if text, ok := o.Options.Value(name).(string); ok && text != "" {
		return text
	}
	section, key, _ := strings.Cut(name, ".")
	m, _ := o.Options.Value(section).(*value.Map)
	if text, ok := m.Value(key).(string); ok && text != "" {
		return text
	}
	return otherwise
}

// toFile appends a result to a file, as a line of JSON.
func (c *calling) toFile(o *inspect.Opened, ret *value.Map) error {
	if c.layout().Relocated() {
		return errors.New("not with --root")
	}
	line, err := json.Marshal(ret)
	if err != nil {
		return err
	}
	to := saltFlags{file: returnOption(o, "rawfile_json.filename", "/var/log/salt/events"), appends: true}
	return to.write(nil, string(line), outputter.Options{Format: outputter.Formatted})
}

// levels and facilities are those of syslog(3), by their numbers.
func levels() []string {
	return []string{"EMERG", "ALERT", "CRIT", "ERR", "WARNING", "NOTICE", "INFO", "DEBUG"}
}

func facilities() []string {
	return []string{"KERN", "USER", "MAIL", "DAEMON", "AUTH", "SYSLOG", "LPR", "NEWS", "UUCP", "CRON", "AUTHPRIV", "FTP",
		"", "", "", "", "LOCAL0", "LOCAL1", "LOCAL2", "LOCAL3", "LOCAL4", "LOCAL5", "LOCAL6", "LOCAL7"}
}

// syslogSocket is where syslog listens.
const syslogSocket = "/dev/log"

// toSyslog writes a result to syslog, as a line of JSON.
func (c *calling) toSyslog(o *inspect.Opened, ret *value.Map) error {
	if c.layout().Relocated() {
		return errors.New("not with --root")
	}
	level := slices.Index(levels(), strings.TrimPrefix(returnOption(o, "syslog.level", "LOG_INFO"), "LOG_"))
	facility := slices.Index(facilities(), strings.TrimPrefix(returnOption(o, "syslog.facility", "LOG_USER"), "LOG_"))
	if level < 0 || facility < 0 {
		return diag.Config.Hint(errors.New("syslog.level or syslog.facility of the minion file is unknown"),
			"write them as LOG_INFO and LOG_USER")
	}
	line, err := json.Marshal(ret)
	if err != nil {
		return err
	}
	conn, err := net.Dial("unixgram", syslogSocket)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "<%d>%s[%d]: %s", facility*8+level, returnOption(o, "syslog.tag", "corpus-agent"),
		os.Getpid(), line)
	return err
}
