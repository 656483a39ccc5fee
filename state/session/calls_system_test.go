package session_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestCommandsOfSystemAndPip checks the commands that functions of system and pip run.
func TestCommandsOfSystemAndPip(t *testing.T) {
	var ran []string
	programs := func(c host.Command) (host.Output, error) {
		line := filepath.Base(c.Argv[0]) + " " + strings.Join(c.Argv[1:], " ")
		switch {
		case strings.Contains(line, " list "):
			return host.Output{Stdout: `[{"name": "wheel", "version": "1.0"}]`}, nil
		case strings.HasSuffix(line, "--version"):
			return host.Output{Stdout: "pip 23.0 from /usr/lib/python3/dist-packages/pip (python 3.11)"}, nil
		}
		ran = append(ran, line)
		return host.Output{}, nil
	}
	me := tester()
	s, root := sessionBelow(t, map[string]string{"etc/passwd": me.passwd, "etc/group": "root:x:0:\n",
		"etc/hostname": "web1\n"}, programs)
	programsIn(t, root, "hostnamectl", "date", "hwclock", "init", "pip3", "pip", "python3")
	runCalls(t, s, root, []functionCall{
		{name: "system.set_computer_name", args: []any{"web2"}, want: "True"},
		{name: "system.set_computer_name", args: []any{"--help"}, want: "!is not a valid host name"},
		{name: "system.set_computer_desc", args: []any{"Web server"}, want: "True"},
		{name: "system.set_system_date_time", args: []any{2024, 1, 31, 12, 30, 5, "+0000"}, want: "True"},
		{name: "system.set_system_time", args: []any{"noon"}, want: "!is not a time such as"},
		{name: "system.set_system_date", args: []any{"31.1.2024"}, want: "!is not a date such as"},
		{name: "system.init", args: []any{3}, want: "''"},
		{name: "system.init", args: []any{"9"}, want: "!no run level"},
		{name: "pip.uninstall", args: []any{"wheel,requests"}, want: "~wheel"},
		{name: "pip.uninstall", want: "!takes pkgs"},
		{name: "pip.install", want: "!takes pkgs, requirements or editable"},
	})
	for _, want := range []string{"hostnamectl set-hostname --static --transient web2",
		"hostnamectl set-hostname --pretty Web server",
		"date --set 2024-01-31T12:30:05+00:00", "hwclock --systohc", "init 3"} {
		if !slices.Contains(ran, want) {
			t.Errorf("%q was not run:\n%s", want, strings.Join(ran, "\n"))
		}
	}
	if !slices.ContainsFunc(ran,
		func(line string) bool { return strings.Contains(line, "uninstall") && strings.HasSuffix(line, "wheel") }) {
		t.Errorf("pip did not remove the package:\n%s", strings.Join(ran, "\n"))
	}
}

// TestUnchrootableRootDoesNotSetClock calls functions that set the machine's clock and name, below a root that is not a
// system.
func TestUnchrootableRootDoesNotSetClock(t *testing.T) {
	s, root := sessionBelow(t, nil, nil)
	runCalls(t, s, root, []functionCall{
		{name: "system.init", args: []any{3}, want: "!would act on the running system"},
		{name: "system.set_computer_name", args: []any{"web2"}, want: "!would act on the running system"},
		{name: "system.set_system_date", args: []any{"2024-01-31"}, want: "!would act on the running system"},
		{name: "system.set_system_time", args: []any{"12:00"}, want: "!would act on the running system"},
		{name: "state.single", args: []any{"file.serialize", "/a.toml"},
			kwargs: value.NewMap("dataset", value.NewMap("b", 2), "serializer", "toml"), want: "~True", file: "a.toml",
			text: "b = 2\n\n"},
		{name: "state.single", args: []any{"file.serialize", "/a.toml"},
			kwargs: value.NewMap("dataset", value.NewMap("a", 1), "serializer", "toml", "merge_if_exists", true),
			want:   "~True", file: "a.toml", text: "b = 2\na = 1\n\n"},
	})
}
