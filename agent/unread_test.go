package agent_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// TestUnreadFilesOfReleaseAreNoted checks the notes of a dry run and of the deploy, but not of later runs. A build
// refuses such files; this release was made otherwise.
func TestUnreadFilesOfReleaseAreNoted(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1", "hooks/pre_release.d/10-x": "#!/bin/sh\n"})
	dry, err := l.Deploy(context.Background(), l.firstDeploy(), true)
	must(t, err)
	const want = `myapp 1: hooks/pre_release.d: no stage of hooks is called so, and nothing runs it; did you mean ` +
		`pre-release.d?`
	noted(t, dry, want)
	noted(t, l.expect(exit.OK), want)
	if again := l.expect(exit.OK); strings.Contains(strings.Join(again.Notes, "\n"), "no stage of hooks") {
		t.Errorf("a run without a deploy repeats the note: %q", again.Notes)
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

// TestDryRunShowsHooksAndRestarts checks that a dry run shows them, as the dry run of a rollback does.
func TestDryRunShowsHooksAndRestarts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it changes roots")
	}
	l, _ := runningUnits(t, "1", "app.service")
	l.Chroot = true
	l.app("2", artifacttest.Files{"hooks/pre-release.d/10-check": "#!/bin/sh\n",
		"hooks/post-release.d/20-say": "#!/bin/sh\n"})
	dry, err := l.Deploy(context.Background(), l.firstDeploy(), true)
	must(t, err)
	noted(t, dry, "would run the hooks pre-release 10-check, post-release 20-say")
	noted(t, dry, "would restart app.service, as far as they run another release then")
	l.app("1")
	l.expect(exit.OK)
	again, err := l.Deploy(context.Background(), l.firstDeploy(), true)
	must(t, err)
	if text := strings.Join(again.Notes, "\n"); strings.Contains(text, "would run") ||
		strings.Contains(text, "would restart") {
		t.Errorf("a dry run without a deploy has the notes %q", text)
	}
}
