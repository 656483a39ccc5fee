package project

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/procedure/git"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// accountName matches names of users that useradd accepts on all distributions.
var accountName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`) })

// CheckUser returns an error for an invalid name of a user; "" stands for the default one.
func CheckUser(name string) error {
	if name == "" || accountName().MatchString(name) {
		return nil
	}
	return exit.WithCode(exit.Usage, diag.Usage.Hint(fmt.Errorf("--user %q is not a name of a user", name),
		"write up to 32 of a-z, 0-9, - and _, with a letter or _ first"))
}

// branchName matches names of branches without characters that git or a shell treats specially.
var branchName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`)
})

// CheckBranch returns an error for a name of a branch that git, or a shell that a hook starts, could misread; "" stands
// for the default one.
func CheckBranch(name string) error {
	if name == "" ||
		len(name) <= 200 && branchName().MatchString(name) && !strings.Contains(name, "..") &&
			!strings.HasSuffix(name, ".lock") {
		return nil
	}
	return exit.WithCode(
		exit.Usage,
		diag.Usage.Hint(
			fmt.Errorf("--branch %q is not a name of a branch", name),
			"write a name such as main or release/1.2",
		),
	)
}

// CheckRepositories returns an error unless everything in the repositories of a project belongs to root alone: git runs
// there as root, and runs programs that hooks and configuration name. It returns nil if the repositories do not exist.
func (r *Run) CheckRepositories(p layout.Project) error {
	root, err := r.Host.OpenSafely()
	if err != nil {
		return err
	}
	defer root.Close()
	err = root.CheckRootOnly(r.Host.Layout.Inside(filepath.Dir(p.Git("project"))))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var unsafe *walk.UnsafeError
	if errors.As(err, &unsafe) {
		return exit.WithCode(
			exit.Refused,
			diag.Exposed.Hint(
				fmt.Errorf("git does not run in the repositories of %s: %w", p.Name, err),
				"%s",
				unsafe.Hint(),
			),
		)
	}
	return err
}

// Repositories creates the git repositories of the project and of its pillar if they do not exist, and returns their
// paths. branch is the one that is deployed; "" keeps the one of the registry. The hooks of the repositories run the
// command line command.
func (r *Run) Repositories(ctx context.Context, branch, command string) ([]string, error) {
	if r.Entry.Branch == "" || branch != "" {
		r.Entry.Branch = branch
	}
	if r.Entry.Branch == "" {
		r.Entry.Branch = records.DefaultBranch
	}
	p := r.Host.LayoutOf(r.Entry.Name)
	if err := r.CheckRepositories(p); err != nil {
		return nil, err
	}
	var remotes []string
	for _, which := range []string{"project", "pillar"} {
		hook := fmt.Sprintf(
			"#!/bin/sh\n# Deploys what is pushed, before any ref moves. Written by corpus-agent.\nexec %s project receive "+
				"%s %s\n",
			command,
			p.Name,
			which,
		)
		if err := git.Init(ctx, p.Git(which), r.Entry.Branch, hook); err != nil {
			return nil, err
		}
		if err := os.Chmod(p.Git(which), 0o700); err != nil { // the history of a project may hold a pillar, too
			return nil, err
		}
		remotes = append(remotes, p.Git(which))
	}
	return remotes, nil
}

// HookCommand returns the command line of a shell that runs program with args.
func HookCommand(program string, args ...string) string {
	words := []string{diag.ShellWord(program)}
	for _, arg := range args {
		words = append(words, diag.ShellWord(arg))
	}
	return strings.Join(words, " ")
}
