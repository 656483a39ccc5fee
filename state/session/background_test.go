package session_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// TestBackgroundProcessWithOpenOutputDoesNotBlock checks that a command ends although a background process keeps its
// output open.
func TestBackgroundProcessWithOpenOutputDoesNotBlock(t *testing.T) {
	c := newClones(t)
	script := filepath.Join(c.dir, "leaver")
	hosttest.Put(t, script, "#!/bin/sh\n(trap '' HUP TERM INT; exec setsid sleep 100) &\necho left\n", 0o755)
	for _, sls := range []string{
		"cmd.run: [{name: " + script + "}, {runas: nobody}]",
		"cmd.run: [{name: " + script + "}, {runas: nobody}, {use_vt: true}]",
		"cmd.run: [{name: " + script + "}, {runas: nobody}, {timeout: 200}]",
		"cmd.run: [{name: 'true'}, {runas: nobody}, {unless: '" + script + "; false'}]",
		"cmd.script: [{name: " + script + "}, {runas: nobody}]",
		"test.nop: [{name: '{{ salt[\"cmd.run\"](\"" + script + "\", runas=\"nobody\") }}'}]",
	} {
		start := time.Now()
		r := c.apply("t: {" + sls + "}")
		if took := time.Since(start); took > time.Minute || r.Outcome != exec.Succeeded {
			t.Errorf("%s: %v after %v: %s", sls, r.Outcome, took, r.Comment)
		}
		if strings.Contains(sls, "cmd.run: [{name: "+script) && !strings.Contains(changesOf(r), "left") {
			t.Errorf("%s: the output is lost: %s", sls, changesOf(r))
		}
	}
}
