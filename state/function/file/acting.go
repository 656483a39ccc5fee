package file

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

// Acting returns the functions that change files in ways for which there is no equivalent state.
func Acting(f *function.Facts) function.Table {
	o := file{f}
	return stateFunctions(o).Add(function.Table{
		"file.set_mode": function.Of("path, mode", o.setMode),
		"file.chown":    function.Of("path, user, group", o.chown),
		"file.chgrp":    function.Of("path, group", func(p, group string) (any, error) { return o.chown(p, "", group) }),
		"file.write":    function.Of("path, *args", o.write(false)),
		"file.append":   function.Of("path, *args", o.write(true)),
	})
}

// setMode sets the mode of a file and returns the new mode.
func (o file) setMode(p string, mode any) (string, error) {
	var m module.Mode
	if err := m.UnmarshalSLS(mode); err != nil {
		return "", function.TypeError("argument mode: %v", err)
	}
	if err := o.Host.MayDeclare(o.path(p), -1, -1, m.Bits); err != nil { // whatever user owns the file
		return "", err
	}
	real, err := o.target(p)
	if err != nil {
		return "", err
	}
	return module.ModeText(m.Bits), o.Host.Declared(o.path(p), o.Host.Files.Chmod(real, m.Bits))
}

// target returns the file that a path leads to. It returns an error if there is none.
func (o file) target(p string) (string, error) {
	real, err := o.Host.Files.Resolve(o.path(p))
	if err != nil {
		return "", err
	}
	_, err = o.Host.Files.Lstat(real)
	return real, err
}

func (o file) chown(p, user, group string) (any, error) {
	uid, gid := -1, -1
	if user != "" {
		u, ok, err := o.Host.Accounts.User(user)
		if err != nil || !ok {
			return nil, errors.Join(err, fmt.Errorf("user %s does not exist", user))
		}
		uid = u.UID
	}
	if group != "" {
		g, ok, err := o.Host.Accounts.Group(group)
		if err != nil || !ok {
			return nil, errors.Join(err, fmt.Errorf("group %s does not exist", group))
		}
		gid = g.GID
	}
	real, err := o.target(p)
	if err != nil {
		return nil, err
	}
	return nil, o.Host.Files.Chown(real, uid, gid)
}

// write writes lines to a file: after its present content, or in place of it.
func (o file) write(after bool) func(ctx context.Context, p string, lines []string) (string, error) {
	return func(_ context.Context, p string, lines []string) (string, error) {
		p = o.path(p)
		text := ""
		if after && o.IsFile(p) {
			old, err := function.ReadText(o.Host, p)
			if err != nil {
				return "", err
			}
			if text = old; text != "" && !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
		}
		for _, line := range lines {
			text += strings.TrimRight(line, "\n") + "\n"
		}
		err := o.Host.Files.Write(p, host.NewFile{Content: strings.NewReader(text), UID: -1, GID: -1})
		return fmt.Sprintf("wrote %d to %s", len(lines), p), err
	}
}
