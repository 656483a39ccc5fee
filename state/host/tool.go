package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Tool is a program of the system, run to read something or to change something that is not a file.
type Tool struct {
	Argv    []string
	Stdin   string
	Env     []string      // NAME=value, on top of a plain PATH and locale
	Limit   time.Duration // 10 minutes by default
	Changes Subject       // the subject that it replaces, which is recorded first; zero for a tool that only reads
	Package string        // package that contains the tool, for the hint if it is missing
	Asides  []string      // parts of lines of its messages that are not why it fails, if it has others
	Plain   []string      // words of Argv that begin with a slash and are no paths
}

// paths returns the absolute paths among the arguments if the tool changes something, and nil otherwise.
func (t Tool) paths() (all []string) {
	if t.Changes == (Subject{}) {
		return nil
	}
	for _, word := range t.Argv[1:] {
		if path.IsAbs(word) && !slices.Contains(t.Plain, word) {
			all = append(all, word)
		}
	}
	return all
}

// Tool runs a program of the system to its end and returns its output. A tool that changes something gets no absolute
// path that another user can redirect: see Command.Paths. An exit code other than 0 is a *ToolError with the message of
// the program; a program that does not exist is an error with a hint.
func (h *Host) Tool(ctx context.Context, t Tool) (string, error) {
	name := path.Base(t.Argv[0])
	if err := h.Commands.Allowed(name); err != nil {
		return "", err
	}
	program, ok := h.Which(name)
	if !ok {
		return "", diag.Program.Hint(fmt.Errorf("%s is not installed", name),
			"install %s in a pkg.installed state that this one requires", t.packageName())
	}
	if err := Record(h.recorder, t.Changes); err != nil {
		return "", err
	}
	c := Command{Argv: append([]string{program}, t.Argv[1:]...), Env: append(ToolEnvironment(), t.Env...), Stdin: t.Stdin,
		Limit: t.limit(), Quiet: t.Changes == Subject{}, Named: true, Paths: t.paths()}
	out, err := h.Commands.Run(ctx, c)
	switch {
	case err != nil:
		return out.Stdout, err
	case out.TimedOut:
		return out.Stdout, fmt.Errorf("%s did not end in %s", name, c.Limit)
	case out.Code != 0:
		text := FirstLines(t.reasons(out.Stderr))
		if text == "" {
			text = FirstLines(out.Stdout)
		}
		return out.Stdout, &ToolError{Tool: name, Code: out.Code, Text: text}
	}
	return out.Stdout, nil
}

// reasons returns the lines of the messages of a tool that has failed without asides, or all if there are no others.
func (t Tool) reasons(messages string) string {
	var kept strings.Builder
	for line := range strings.Lines(messages) {
		if !slices.ContainsFunc(t.Asides, func(aside string) bool { return strings.Contains(line, aside) }) {
			kept.WriteString(line)
		}
	}
	return cmp.Or(kept.String(), messages)
}

func (t Tool) limit() time.Duration {
	if t.Limit > 0 {
		return t.Limit
	}
	return ToolLimit
}

func (t Tool) packageName() string {
	if t.Package != "" {
		return t.Package
	}
	return "the package that has it"
}

// Failed returns err with the operation that failed, what, in front, and with a hint about the topic if err has none.
// It returns nil if err is nil.
func Failed(t diag.Topic, err error, what, hint string) error {
	if err == nil {
		return nil
	}
	worded := fmt.Errorf("%s: %w", what, err)
	if diag.HintOf(err) != "" {
		return worded
	}
	return t.Hint(worded, "%s", hint)
}

// ToolLimit is the default time limit of a tool. userdel -r of a large home is the slowest.
const ToolLimit = 10 * time.Minute

// ToolError is the failure of a tool. Text has its message, which contains no passwords, since no tool repeats its
// input.
type ToolError struct {
	Tool string
	Code int
	Text string
}

func (e *ToolError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("%s ended with code %d", e.Tool, e.Code)
	}
	return e.Text
}

// Hint explains the exit code of the tool.
func (e *ToolError) Hint() string { return diag.Account.Coded(e.remedy()) }

// remedy knows the exit codes of useradd(8) and similar tools.
func (e *ToolError) remedy() string {
	if os.Geteuid() != 0 && e.lacksPermission() {
		return "changing the system needs root"
	}
	switch e.Tool + " " + strconv.Itoa(e.Code) {
	case "useradd 1", "usermod 1", "userdel 1", "useradd 10", "usermod 10", "userdel 10", "groupadd 10", "groupmod 10",
		"groupdel 10",
		"chage 15", "chpasswd 1":
		return "check that /etc is writable and has space, and that no other tool holds /etc/passwd.lock or " +
			"/etc/group.lock"
	case "useradd 4", "usermod 4":
		return "choose another uid, or set unique: False"
	case "groupadd 4", "groupmod 4":
		return "choose another gid, or set non_unique: True"
	case "useradd 9":
		return "set gid to the group of that name to take it as the user's own"
	case "useradd 12":
		return "the account exists, its home does not: check the directory above it, or set createhome: False"
	case "useradd 3", "usermod 3", "useradd 19", "groupadd 3":
		return "correct the argument it names"
	case "usermod 8":
		return "end the user's processes first"
	case "userdel 8":
		return "end the user's processes first, or set force: True to remove it anyway"
	case "groupdel 8":
		return "first change the primary group of its users"
	}
	return ""
}

// lacksPermission reports whether the tool failed for lack of permissions.
func (e *ToolError) lacksPermission() bool {
	text := strings.ToLower(e.Text)
	for _, words := range []string{"permission denied", "not permitted", "are you root", "be root", "only root",
		"superuser", "authentication"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return text == ""
}

// FirstLines returns the first three lines of a text that are not empty, on one line.
func FirstLines(text string) string {
	lines := strings.FieldsFunc(strings.TrimSpace(text), func(r rune) bool { return r == '\n' })
	return strings.Join(lines[:min(len(lines), 3)], "; ")
}

// Complaint returns the last message of a failed command as an error.
func Complaint(out Output) error {
	if out.Code == 0 {
		return nil
	}
	if last := LastLine(out.Stderr); last != "" {
		return errors.New(last)
	}
	return fmt.Errorf("it ended with code %d", out.Code)
}

// LastLine returns the last line of a text, without the space around it.
func LastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// Which finds a program by its name in the host's own directories.
func (h *Host) Which(name string) (string, bool) { return Which(h.Files, name) }

// Which searches the system's directories of programs, and then the PATH of the agent.
func Which(files Files, name string) (string, bool) {
	dirs := SystemPath()
	for _, dir := range strings.Split(os.Getenv("PATH"), ":") {
		if strings.HasPrefix(dir, "/") && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	files = followed(files) // links to programs are the administrator's choice
	for _, dir := range dirs {
		file := dir + "/" + name
		if info, err := files.Stat(file); err == nil && info.IsRegular() && info.Mode&0o111 != 0 {
			return file, true
		}
	}
	return "", false
}

// SystemPath returns the directories in which programs of the system are looked up.
func SystemPath() []string {
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
}

// ToolEnvironment returns the environment of the system's own tools: messages in English, no variables of the agent.
func ToolEnvironment() []string {
	return []string{"PATH=" + strings.Join(SystemPath(), ":"), "LC_ALL=C", "HOME=/"}
}
