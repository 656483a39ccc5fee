package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
)

// TestNamesInAnAuditArePrintable checks that the name of an added file, which any user may choose, cannot control a
// terminal.
func TestNamesInAnAuditArePrintable(t *testing.T) {
	var out bytes.Buffer
	p := &program{}
	p.Out = &out
	changes := []manifest.Change{
		{Name: "a\x1b[2J\nmyapp 1: all as signed", What: "was added", Owner: "0", Changed: time.Now()},
		{Name: "run", What: "is missing", Changed: time.Now(), By: "file.absent x in run 1"},
	}
	p.printAudit(inspect.Audit{Changes: changes, Changeable: []string{"salt/a.sls:1 /srv/\x1b[2J"}})
	if !strings.Contains(out.String(), "runs refuse to render it") {
		t.Errorf("verify does not report the file that is not rendered: %s", out.String())
	}
	if strings.Contains(out.String(), "\x1b") || strings.Count(out.String(), "\n") != 4 {
		t.Errorf("verify prints %q", out.String())
	}
	if !strings.Contains(out.String(), "run is missing (by file.absent x in run 1, its directory changed ") {
		t.Errorf("verify does not report the user: %s", out.String())
	}
}
