package deb

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Scripts that register the units of a package with systemd. The first argument is a word in a deb and a number in an
// rpm. The presets of the distribution decide whether a unit starts at boot: those of Debian enable installed units,
// those of Fedora and Red Hat do not. An upgrade keeps the administrator's choice, and restarts running units. dpkg
// passes the previous version to the script after an installation, also if the package was removed in between: only the
// script before the installation is called differently then. So it leaves a mark.
const (
	beforeInstall = `
[ "$1" != install ] || : > %[2]s || true
`
	afterInstall = `
case "$1:${2-}" in
configure:?* | [2-9]:* | [1-9][0-9]*:* | abort-*) first=no ;;
*) first=yes ;;
esac
[ ! -e %[2]s ] || first=yes
rm -f %[2]s
if command -v systemctl >/dev/null; then
  [ $first = no ] || systemctl --no-reload preset %[1]s >/dev/null 2>&1 || true
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    for unit in %[1]s; do
      if [ $first = no ]; then
        systemctl try-restart "$unit" || true
      elif [ "$(systemctl is-enabled "$unit" 2>/dev/null)" = enabled ]; then
        systemctl start "$unit" || true
      fi
    done
  fi
fi
`
	beforeRemoval = `
case "$1" in
remove | 0)
  if command -v systemctl >/dev/null; then
    [ ! -d /run/systemd/system ] || systemctl stop %[1]s || true
    systemctl --no-reload disable %[1]s >/dev/null 2>&1 || true
  fi ;;
esac
`
	afterRemoval = `
[ ! -d /run/systemd/system ] || systemctl daemon-reload || true
`
)

// scripts has the maintainer scripts of a package: those of the recipe, and the commands for units.
type scripts struct {
	r     Request
	units string // "" for none
}

func (r Request) scripts() scripts {
	var names []string
	for _, f := range r.Files {
		if name := path.Base(f.Target); f.Unit && !strings.Contains(name, "@.") { // a template unit cannot be started
			names = append(names, "'"+name+"'")
		}
	}
	return scripts{r: r, units: strings.Join(names, " ")}
}

// write writes the scripts and returns their file names, or "".
func (s scripts) write(about recipe.Package) (nfpm.Scripts, error) {
	first, err1 := s.joined(about.PreInstall, beforeInstall, "", "pre-install")
	post, err2 := s.joined(about.PostInstall, "", afterInstall, "post-install")
	pre, err3 := s.joined(about.PreRemove, beforeRemoval, "", "pre-remove")
	gone, err4 := s.joined(about.PostRemove, "", afterRemoval, "post-remove")
	return nfpm.Scripts{PreInstall: first, PostInstall: post, PreRemove: pre, PostRemove: gone},
		errors.Join(err1, err2, err3, err4)
}

// joined adds the commands for units before or after a script of the tree. The script runs in a subshell, so that
// its exit does not skip them; if it fails, the whole script fails.
func (s scripts) joined(script, before, after, name string) (string, error) {
	if s.units == "" {
		return s.r.script(script), nil
	}
	shebang, text := "#!/bin/sh\n", ""
	if script != "" {
		data, err := walk.ReadFile(s.r.script(script))
		if err != nil {
			return "", err
		}
		text = string(data)
		if strings.HasPrefix(text, "#!") {
			shebang, text, _ = strings.Cut(text, "\n")
			shebang += "\n"
		}
		if !isShell(shebang) {
			return "", diag.Package.Hint(fmt.Errorf("the script %s is for %s, and a package with units needs a shell script",
				script, strings.TrimSpace(shebang)), "write a shell script that starts the other one")
		}
		text = "(\n" + text + "\n)\nresult=$?\n[ $result = 0 ] || exit $result\n"
	}
	file := filepath.Join(s.r.Scratch, name)
	content := shebang + s.fill(before) + text + s.fill(after)
	return file, os.WriteFile(file, []byte(content), 0o755)
}

func (s scripts) fill(script string) string {
	return strings.NewReplacer("%[1]s", s.units, "%[2]s", "/run/"+s.r.Name+".installing").Replace(script)
}

func isShell(shebang string) bool {
	fields := strings.Fields(strings.TrimPrefix(shebang, "#!"))
	if len(fields) > 1 && path.Base(fields[0]) == "env" {
		fields = fields[1:]
	}
	return slices.Contains([]string{"sh", "bash", "dash"}, path.Base(fields[0]))
}
