package pip

import (
	"context"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/process"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module/client"
)

// handed are the arguments by which pip gets what is to be installed, and the environment with the logins of
// repositories, which pip would show in the arguments of git. Other URLs with a login, and requirements of the state
// tree, are put into files that the user who runs pip can read alone. The caller calls remove, with an error too, which
// deletes them.
func (p *installed) handed(ctx context.Context, h *host.Host,
	program program.Program) (args, env []string, remove func(), err error) {
	var temporary []string
	remove = func() {
		for _, file := range temporary {
			_ = h.Files.Remove(file) // what is left of it is its user's alone
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
		case client.HasLogin(line):
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
		var file string
		if file, err = h.TempFor(user, "requirements-*.txt", []byte(text), 0o600); err == nil {
			temporary, args = append(temporary, file), append(args, "--requirement", file)
		}
	}
	return args, env, remove, err
}

// withoutGitLogins takes the logins out of the URLs of git repositories in some texts, of one line or more.
func withoutGitLogins(texts []string) (plain, env []string) {
	var words []string
	for _, text := range texts {
		for _, word := range strings.Fields(text) {
			if strings.Contains(word, "git+http") && client.HasLogin(word) && !slices.Contains(words, word) {
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
