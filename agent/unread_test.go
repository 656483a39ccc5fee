package agent_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// TestUnreadFilesOfReleaseAreNoted are noted by a dry run and by the deploy, and not afterwards. A build refuses
// them; the release here comes from elsewhere.
func TestUnreadFilesOfReleaseAreNoted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1", "hooks/pre_release.d/10-x": "#!/bin/sh\n"})
	dry, err := l.Deploy(context.Background(), l.trusting(), true)
	must(t, err)
	const want = `myapp 1: hooks/pre_release.d: no stage of hooks is called so, and nothing runs it; did you mean ` +
		`pre-release.d?`
	noted(t, dry, want)
	noted(t, l.expect(exit.OK), want)
	if again := l.expect(exit.OK); strings.Contains(strings.Join(again.Notes, "\n"), "no stage of hooks") {
		t.Errorf("a run that deploys nothing notes it again: %q", again.Notes)
	}
}

// TestStatesOfAServiceInThePlaceOfBaseAreNoted deploys a service whose states are where only a base release has them.
func TestStatesOfAServiceInThePlaceOfBaseAreNoted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.repo.Release("myapp", "1", "testing", artifacttest.Files{"states/top.sls": "base: {}\n"})
	const want = "myapp 1: states/top.sls is read in a base release alone; move states to salt/config/states"
	noted(t, l.expect(exit.OK), want)
	l.repo.Release("myapp", "2", "testing",
		artifacttest.Files{"states/top.sls": "base: {}\n", "salt/config/states/top.sls": "base: {}\n"})
	if r := l.expect(exit.OK); strings.Contains(strings.Join(r.Notes, "\n"), "in a base release alone") {
		t.Errorf("a service with states of its own has the note %q", r.Notes)
	}
}

// TestDryRunShowsHooksAndRestarts besides the states, as that of a rollback does.
func TestDryRunShowsHooksAndRestarts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("entering a root takes root")
	}
	l, _ := runningUnits(t, "1", "app.service")
	l.Chroot = true
	l.app("2", artifacttest.Files{"hooks/pre-release.d/10-check": "#!/bin/sh\n",
		"hooks/post-release.d/20-say": "#!/bin/sh\n"})
	dry, err := l.Deploy(context.Background(), l.trusting(), true)
	must(t, err)
	noted(t, dry, "would run the hooks pre-release 10-check, post-release 20-say")
	noted(t, dry, "would restart app.service, as far as they run another release then")
	l.app("1")
	l.expect(exit.OK)
	again, err := l.Deploy(context.Background(), l.trusting(), true)
	must(t, err)
	if text := strings.Join(again.Notes, "\n"); strings.Contains(text, "would run") ||
		strings.Contains(text, "would restart") {
		t.Errorf("a dry run with nothing to deploy notes %q", text)
	}
}
