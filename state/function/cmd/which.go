package cmd

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/function/ospath"
	"github.com/corpus-agent/corpus-agent/state/jinja"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// which returns the path of a program in PATH or in the system's usual directories, and None if there is none.
func (c cmd) which(name string) any {
	if name == "" {
		return nil
	}
	if path.IsAbs(name) && c.executable(name) {
		return name
	}
	dirs := strings.Split(os.Getenv("PATH"), ":")
	for _, dir := range []string{"/sbin", "/bin", "/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"} {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		if file := ospath.Join([]string{dir, strings.TrimLeft(name, "/")}); path.IsAbs(dir) && c.executable(file) {
			return file
		}
	}
	return nil
}

func (c cmd) executable(file string) bool {
	info, err := c.Host.Following().Files.Stat(file)
	return err == nil && info.IsRegular() && function.Permitted(info, 1)
}

func (c cmd) whichOf(names any) any {
	list, err := function.Texts(names)
	if err != nil {
		return nil
	}
	for _, name := range list {
		if file := c.which(name); file != nil {
			return file
		}
	}
	return nil
}

// shells returns the entries of /etc/shells.
func (c cmd) shells() []string {
	text, err := function.ReadText(c.Host, "/etc/shells")
	if err != nil {
		return []string{}
	}
	list := []string{}
	for _, line := range value.SplitLines(text, false) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
}

// WhichFilter returns Salt's Jinja filter which.
func WhichFilter(f *function.Facts) jinja.Filter { return function.PathFilter("which", cmd{f}.which) }
