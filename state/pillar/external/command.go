package external

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// printed runs a command and returns its output, parsed as YAML or JSON. %s in the command stands for the ID of the
// host.
func (w World) printed(ctx context.Context, s Source) (any, error) {
	command, err := w.command(value.Str(s.Argument))
	if err != nil {
		return nil, err
	}
	answer, err := w.Call(ctx, "cmd.run_all", []any{command}, value.NewMap("python_shell", true))
	if err != nil {
		return nil, err
	}
	m, _ := answer.(*value.Map)
	if code := m.Value("retcode"); code != 0 {
		problem := "the command ended with " + value.Str(code)
		if said := strings.TrimSpace(value.Str(m.Value("stderr"))); said != "" {
			problem += ": " + said
		}
		return nil, diag.External.Hint(errors.New(problem), "run the command on this host as root; it has to end with 0")
	}
	text := value.Str(m.Value("stdout"))
	if s.Name == "cmd_json" {
		return fromJSON(text)
	}
	return fromYAML(text)
}

// command returns a command with the ID of the host in it, if root may run it.
func (w World) command(text string) (string, error) {
	if strings.Contains(text, "%s") && strings.IndexFunc(w.ID, special) >= 0 {
		return "", diag.External.Hint(
			fmt.Errorf("the command has %%s, and the shell may not read the ID %q as one word", w.ID),
			"give the host an ID of letters, digits, dots, underscores and hyphens, or take %%s out of the command")
	}
	text = strings.ReplaceAll(text, "%s", w.ID)
	return text, w.checkTrusted(text)
}

// special reports whether a character of an ID is refused in commands: a shell, or a program, may read more than a name
// in it.
func special(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
}

// checkTrusted refuses a command, which root runs, if its words name a file that an unprivileged user can change. It
// checks only absolute paths of existing files.
func (w World) checkTrusted(command string) error {
	for _, file := range value.PathsIn(command) {
		info, err := w.Files.Stat(file)
		found, err := walk.Found(err)
		if err == nil && (!found || !info.IsRegular()) {
			continue
		}
		if err == nil {
			err = w.Files.CheckTrusted(file)
		}
		if err != nil {
			return diag.Exposed.Hint(fmt.Errorf("root does not run a command with %s: %w", file, err),
				"give the file and the directories above it to root, so that no other user can change them")
		}
	}
	return nil
}
