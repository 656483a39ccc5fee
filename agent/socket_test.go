package agent_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
)

// TestSocketIsRestartedWithItsService lists the units of a release in every combination with a socket.
func TestSocketIsRestartedWithItsService(t *testing.T) {
	artifacttest.Long(t)
	for names, starts := range map[string]bool{
		"[web.service, sk.socket]": true, "[sk.service, sk.socket]": true, "[sk.socket, sk.service]": true,
		"[sk.socket]": true, "[sk.socket, web.service]": false,
	} {
		t.Run(names, func(t *testing.T) {
			l, u := runningUnits(t, "1", "web.service", "sk.service")
			if !starts {
				u.all["sk.service"].Active, u.all["sk.service"].MainPID = "inactive", 0 // without a connection so far
			}
			socket := u.add("sk.socket", "")
			socket.Active, socket.Triggers, socket.Began, socket.BeganAt = "active", []string{"sk.service"}, u.Clock(),
				time.Now()
			named := artifacttest.Files{recipe.Name: "units: " + names + "\n"}
			l.app("2", named)
			r := l.expect(exit.OK)
			want := map[bool]string{true: "2", false: ""}[starts]
			u.runs(t, "sk.service", want)
			if socket.Active != "active" {
				t.Errorf("the socket is %s after %q", socket.Active, u.acted)
			}
			if slices.IndexFunc(u.acted, func(s string) bool { return s == "restart sk.service" }) < slices.Index(u.acted,
				"restart sk.socket") && starts {
				t.Errorf("the service was started before its socket: %q", u.acted)
			}
			if starts && !strings.Contains(did(r), "restarted sk.service for myapp 2") {
				t.Errorf("the report has %q", did(r))
			}
			if _, err := l.Rollback(context.Background()); err != nil {
				t.Fatal(err)
			}
			u.runs(t, "sk.service", map[bool]string{true: "1", false: ""}[starts])
			if socket.Active != "active" {
				t.Errorf("after the rollback the socket is %s: %q", socket.Active, u.acted)
			}
		})
	}
}

// TestMaskedServiceOfASocketIsNotStopped masks an active service, which could not be started again.
func TestMaskedServiceOfASocketIsNotStopped(t *testing.T) {
	l, u := runningUnits(t, "1", "web.service", "sk.service")
	u.all["sk.service"].Masked = true
	socket := u.add("sk.socket", "")
	socket.Active, socket.Triggers, socket.Began, socket.BeganAt = "active", []string{"sk.service"}, u.Clock(), time.Now()
	l.app("2", artifacttest.Files{recipe.Name: "units: [web.service, sk.socket]\n"})
	r := l.expect(exit.OK)
	if u.all["sk.service"].MainPID == 0 || socket.Active != "active" {
		t.Errorf("the service or its socket was stopped: %q", u.acted)
	}
	u.runs(t, "web.service", "2")
	if got := did(r); !strings.Contains(got, "left sk.socket for myapp 2") {
		t.Errorf("the report has %q", got)
	}
}
