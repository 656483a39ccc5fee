package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Ansible converges with ansible-playbook on this host: base's playbook, then the service's.
type Ansible struct{ Program string }

// playbook is the path of the playbook in a release.
const playbook = "ansible/site.yml"

// Compile finds the playbooks and writes the grains to a file of variables.
func (a Ansible) Compile(_ context.Context, r Request) (Program, error) {
	argv := []string{a.Program, "-c", "local", "-i", "localhost,"}
	if r.Test {
		argv = append(argv, "--check", "--diff")
	}
	vars := filepath.Join(r.WorkDir, "ansible-vars.json")
	data, err := json.Marshal(map[string]any{"grains": r.Grains})
	if err == nil {
		err = durable.WriteFile(vars, data, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("preparing ansible-playbook: %w", err)
	}
	argv = append(argv, "--extra-vars", "@"+vars)
	books, err := playbooks(r)
	if err != nil {
		return nil, err
	}
	return prepare(r,
		program{argv: append(argv, books...), env: []string{"ANSIBLE_NOCOLOR=1", "ANSIBLE_LOCALHOST_WARNING=False"}})
}

func playbooks(r Request) ([]string, error) {
	var books []string
	for _, dir := range []string{r.Base, r.Service} {
		if dir == "" {
			continue
		}
		book := path.Join(dir, playbook)
		_, err := r.Host.Files.Stat(book)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("finding playbooks: %w", err)
		}
		books = append(books, book)
	}
	if len(books) == 0 {
		return nil, diag.Engine.Hint(errors.New("neither base nor the service has a playbook"),
			"put it at %s of the release", playbook)
	}
	return books, nil
}

// Command converges a host with a program of the operator. The environment of the program names the trees and the mode
// (CORPUS_SERVICE_DIR, CORPUS_BASE_DIR, CORPUS_TEST=1 for a dry run, and the identity).
type Command struct{ Argv []string }

// Compile finds the program.
func (c Command) Compile(_ context.Context, r Request) (Program, error) {
	argv := append([]string{}, c.Argv...)
	return prepare(r, program{argv: argv, dir: "/"})
}
