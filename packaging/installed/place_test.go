package installed_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/installed"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func TestPathsFollowTheFiles(t *testing.T) {
	p := installed.Place{Name: "hello", Prefix: "/opt/hello"}
	for text, want := range map[string]string{
		"ExecStart=/srv/projects/hello/current/bin/hello": "ExecStart=/opt/hello/" +
			"bin/hello",
		"ExecStart=-/srv/service/current/bin/hello -c /srv/service/current/a -d=/srv/service/next": "ExecStart=-/opt/hello/bin/hello -c /opt/hello/a -d=/opt/hello",
		"WorkingDirectory=/srv/projects/%p/project": "WorkingDirectory=/" +
			"opt/hello",
		`X="/srv/service/current":/bin`:         `X="/opt/hello":/bin`,
		"/srv/projects/hello-world/current/bin": "/srv/projects/hello-world/current/bin",
		"/srv/services/current":                 "/srv/services/current",
		"/srv/base/current/bin":                 "/srv/base/current/bin",
		"/var/lib/hello":                        "/var/lib/hello",
		"/mnt/srv/service/current":              "/mnt/srv/service/current",
	} {
		if got, err := p.Text(text); err != nil || got != want {
			t.Errorf("%s becomes %q, %v; want %q", text, got, err, want)
		}
	}
	for text, named := range map[string]string{
		"X=/srv/projects/hello/data/db":    "/srv/projects/hello/data ",
		"X=/srv/service/previous/bin":      "/srv/service/previous ",
		"X=/srv/projects/hello/releases/1": "/srv/projects/hello/releases ",
		"X=/srv/service":                   "/srv/service ",
		"X=/srv/projects/hello/":           "/srv/projects/hello/ ",
	} {
		_, err := p.Text(text)
		if err == nil || !strings.HasPrefix(err.Error(), named) ||
			!strings.Contains(diag.HintOf(err), "StateDirectory=hello") {
			t.Errorf("%s: %v, hint %s", text, err, diag.HintOf(err))
		}
	}
	below := installed.Place{Name: "hello", Prefix: "/srv/projects/hello/packaged"}
	if got, err := below.Text("/srv/projects/hello/current/x /srv/projects/hello/packaged/y"); err != nil ||
		got != "/srv/projects/hello/packaged/x /srv/projects/hello/packaged/y" {
		t.Errorf("a prefix below the project: %q, %v", got, err)
	}
}
