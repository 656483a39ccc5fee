package pip

import (
	"context"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// handed returns the arguments that tell pip what to install, and an environment with the credentials of git
// repositories, which pip would otherwise pass to git as arguments. Other URLs with credentials and the
// requirements files of the state tree are written to files that only the user who runs pip can read. The
// caller must call remove, after an error as well, which deletes these files.
func (p *installed) handed(ctx context.Context, h *host.Host,
	program program.Program) (args, env []string, remove func(), err error) {
	var temporary []func() error
	remove = func() {
		for _, done := range temporary {
			_ = done() // only the user can read a file that remains
		}
	}
	var lines, fetched []string
	for _, file := range p.files {
		if !strings.Contains(file, "://") {
			args = append(args, "--requirement", file)
			continue
		}
		text, err := p.text(ctx, h, file)
		if err != nil {
			return nil, nil, remove, err
		}
		fetched = append(fetched, text)
	}
	for _, item := range p.edit {
		lines = append(lines, "--editable "+item)
	}
	for _, r := range p.todo {
		lines = append(lines, r.Text)
	}
	texts, env := withoutGitLogins(append(fetched, lines...))
	fetched, lines = texts[:len(fetched)], texts[len(fetched):]
	hidden := ""
	for _, line := range lines {
		item, editable := strings.CutPrefix(line, "--editable ")
		switch {
		case redact.HoldsLogin(line):
			hidden += line + "\n"
		case editable:
			args = append(args, "--editable", item)
		default:
			args = append(args, item)
		}
	}
	if hidden != "" {
		fetched = append(fetched, hidden)
	}
	user, err := program.Runner(h)
	for _, text := range fetched {
		if err != nil {
			break
		}
		file, done, failed := h.TempFor(user, "requirements.txt", []byte(text), 0o600)
		temporary, err = append(temporary, done), failed
		args = append(args, "--requirement", file)
	}
	return args, env, remove, err
}

// withoutGitLogins removes the credentials from URLs of git repositories in texts of one or more lines.
func withoutGitLogins(texts []string) (plain, env []string) {
	var words []string
	for _, text := range texts {
		for _, word := range strings.Fields(text) {
			if strings.Contains(word, "git+http") && redact.HoldsLogin(word) && !slices.Contains(words, word) {
				words = append(words, word)
			}
		}
	}
	bare, env := process.GitLogins(words...)
	for _, text := range texts {
		for i, word := range words {
			text = strings.ReplaceAll(text, word, bare[i])
		}
		plain = append(plain, text)
	}
	return plain, env
}
