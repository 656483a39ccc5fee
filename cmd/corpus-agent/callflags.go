package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report/outputter"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host/passwd"
)

// saltFlags has the options of salt-call that have the same meaning here. Those without a meaning here are in
// idleFlags.
type saltFlags struct {
	logLevel    string
	id          string
	doc         bool
	grains      bool
	version     bool
	versions    bool
	skipGrains  bool
	passthrough bool
	metadata    bool
	progress    bool
	noColor     bool
	color       bool
	noParse     []string
	file        string
	appends     bool
	indent      int
	returners   string
}

// idleFlags returns the options of salt-call that scripts use and that have no effect on a host without a master,
// with the reason.
func idleFlags() map[string]string {
	return map[string]string{
		"refresh-grains-cache": "grains are not cached",
		"skip-mine":            "",
		"cachedir":             "nothing is cached",
		"hard-crash":           "an error always ends the call",
		"saltfile":             "options are read from the command line and from -c DIR",
		"master":               "there is no master to ask",
		"auth-timeout":         "there is no master to ask",
		"return-config":        "a returner reads the minion file",
		"return-kwargs":        "a returner reads the minion file",
		"no-return-event":      "",
		"set-metadata":         "there is no list of jobs",
		"timeout":              "the call waits for its function; commands have the argument `timeout`",
		"log-file":             "log messages go to standard error",
		"log-file-level":       "log messages go to standard error",
		"log-fmt-logfile":      "log messages go to standard error",
		"module-dirs":          "modules in Python are not run",
		"states-dir":           "modules in Python are not run",
		"proxyid":              "there are no proxy minions",
		"resource-type":        "",
		"state-events":         "there is no master to send events to",
		"args-stdin":           "arguments are read from the command line",
		"enable-profiling":     "calls are not profiled",
		"profiling-path":       "calls are not profiled",
		"user":                 "the call runs as the user who makes it",
		"priority":             "there is no queue of jobs",
		"state-output-pct":     "",
		"state-output-diff":    "",
		"state-output-exclude": "",
		"state-output-terse":   "",
		"file-buffer-size":     "",
	}
}

// add adds salt-call's options.
func (s *saltFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.SetNormalizeFunc(saltSpelling)
	flags.StringVarP(&s.logLevel, "log-level", "l", "warning", "lowest level of log messages on standard error: "+
		strings.Join(logLevels(), ", "))
	flags.StringVar(&s.id, "id", "", "ID of the host for this call, and its grain id")
	flags.BoolVarP(&s.doc, "doc", "d", false, "show the documentation of FUNCTION, or of all functions of a module")
	flags.BoolVarP(&s.grains, "print-grains", "g", false, "show this host's grains")
	flags.BoolVar(&s.version, "version", false, "show the version of the program")
	flags.BoolVarP(&s.versions, "versions-report", "V", false,
		"show the versions of the program and of the Salt release whose language it implements")
	flags.BoolVar(&s.skipGrains, "skip-grains", false,
		"collect no grains; SLS and pillar files that use them do not compile")
	flags.BoolVar(&s.passthrough, "retcode-passthrough", false,
		"exit with the code of the function: that of a command, or 2 for failed states")
	flags.BoolVar(&s.metadata, "metadata", false, "show the function's name and return code with the result")
	flags.BoolVar(&s.progress, "progress", false,
		"show each state on standard error as it ends; default on a terminal")
	flags.BoolVar(&s.noColor, "no-color", false, "print without colours")
	flags.BoolVar(&s.color, "force-color", false, "print colours although the output is not a terminal")
	flags.StringSliceVar(&s.noParse, "no-parse", nil, "arguments by name whose values are not parsed as YAML")
	flags.StringVar(&s.file, "out-file", "", "write the result to a file")
	flags.BoolVar(&s.appends, "out-file-append", false, "append the result to the file of --out-file")
	flags.StringVar(&s.returners, "return", "", "returners of the tree that get the result, separated by commas")
	flags.IntVar(&s.indent, "out-indent", 4, "spaces of indentation in json; a negative number writes one line")
	for name, why := range idleFlags() {
		idle(flags, name, why)
	}
}

// idle adds an option that is accepted without effect.
func idle(flags *pflag.FlagSet, name, why string) {
	switch name {
	case "refresh-grains-cache", "hard-crash", "no-return-event", "skip-mine", "state-output-pct", "state-output-terse",
		"state-events", "args-stdin", "enable-profiling":
		flags.Bool(name, false, why)
	case "timeout":
		flags.StringP(name, "t", "", why)
	case "user":
		cli.RepeatedVar(flags, new([]string), name, "u", why)
	case "module-dirs":
		cli.RepeatedVar(flags, new([]string), name, "m", why)
	default:
		cli.RepeatedVar(flags, new([]string), name, "", why)
	}
	_ = flags.MarkHidden(name) // the flag exists, since it was added above
}

// saltSpelling normalises the name of an option: salt-call also accepts underscores, British spelling and --output.
func saltSpelling(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	name = strings.ReplaceAll(name, "_", "-")
	name = strings.Replace(name, "colour", "color", 1)
	if rest, ok := strings.CutPrefix(name, "output"); ok && (rest == "" || rest[0] == '-') {
		name = "out" + rest
	}
	switch name {
	case "file-root":
		name = "states"
	case "pillar-root":
		name = "pillar"
	case "documentation":
		name = "doc"
	}
	return pflag.NormalizedName(name)
}

// logLevels returns Salt's log levels, the most verbose first.
func logLevels() []string {
	return []string{"all", "garbage", "trace", "debug", "profile", "info", "warning", "error", "critical", "quiet"}
}

// logged reports whether messages of a level are logged.
func (s *saltFlags) logged(level string) bool {
	levels := logLevels()
	return slices.Index(levels, level) >= slices.Index(levels, s.logLevel) && s.logLevel != "quiet"
}

// check returns an error for a combination of options that makes no sense.
func (s *saltFlags) check() error {
	if s.appends && s.file == "" {
		return exit.WithCode(exit.Usage, diag.Usage.Hint(fmt.Errorf("--out-file-append needs a file"),
			"give --out-file FILE with it"))
	}
	return exit.WithCode(exit.Usage, oneOf("--log-level", s.logLevel, logLevels()))
}

// idleNotes returns a note for each option that was given and has no effect.
func idleNotes(flags *pflag.FlagSet) (notes []string) {
	why := idleFlags()
	flags.Visit(func(f *pflag.Flag) {
		if reason := why[f.Name]; reason != "" {
			notes = append(notes, fmt.Sprintf("--%s has no effect: %s", f.Name, reason))
		}
	})
	return notes
}

// counted merges equal notes into one with their number.
func counted(notes []string) []string {
	count := map[string]int{}
	var each []string
	for _, note := range notes {
		if count[note]++; count[note] == 1 {
			each = append(each, note)
		}
	}
	for i, note := range each {
		if n := count[note]; n > 1 {
			each[i] = note + " (" + diag.Count(n, "time") + ")"
		}
	}
	return each
}

// write writes a result to standard output or to the file of --out-file.
func (s *saltFlags) write(out io.Writer, answer any, o outputter.Options) (err error) {
	o.Indent = s.indent
	name, flags := s.file, os.O_TRUNC
	if s.appends {
		flags = os.O_APPEND
	}
	if name == "" {
		return outputter.Write(out, answer, o)
	}
	o.Color = false
	if err := steady(name); err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|flags, 0o600)
	if err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	return outputter.Write(f, answer, o)
}

// steady returns an error if root would write to a file in a directory that another user controls, since the name
// may be a link of that user.
func steady(name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	full, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	root, err := walk.Open(walk.Options{Safe: true, Members: passwd.Members("")})
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.ByName(full); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return diag.Exposed.Hint(fmt.Errorf("root does not write to %s: %w", name, err),
			"name a file in a directory that is root's")
	}
	return nil
}

// isColored reports whether to print colours: the options override the minion file and the kind of the output.
func (s *saltFlags) isColored(wanted bool, streams cli.IO, w io.Writer) bool {
	switch {
	case s.noColor:
		return false
	case s.color:
		cli.Colored(w)
		return true
	}
	return wanted && streams.Color(w)
}
