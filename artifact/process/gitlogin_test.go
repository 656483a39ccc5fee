package process_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/process"
)

func TestGitLogins(t *testing.T) {
	for _, c := range []struct{ url, want, user, password string }{
		{"git+https://u:p%40ss@h.example/a/b.git@v1#egg=b", "git+https://h.example/a/b.git@v1#egg=b", "u", "p@ss"},
		{"name @ git+https://u:p@h.example/b", "name @ git+https://h.example/b", "u", "p"},
		{"https://u:pl%ain@h.example:8443/b", "https://h.example:8443/b", "u", "pl%ain"},
		{"https://token@h.example/b", "https://h.example/b", "token", ""},
		{"git+ssh://git@h.example/b", "git+ssh://git@h.example/b", "", ""},
		{"name@1.2", "name@1.2", "", ""},
		{"https://h.example/a@b", "https://h.example/a@b", "", ""},
	} {
		plain, env := process.GitLogins(c.url)
		if plain[0] != c.want {
			t.Errorf("%s becomes %s, want %s", c.url, plain[0], c.want)
		}
		if got := slices.Contains(env, "CORPUS_GIT_USER_0="+c.user) &&
			slices.Contains(env, "CORPUS_GIT_PASSWORD_0="+c.password); got != (c.user != "") {
			t.Errorf("%s leaves the environment %q", c.url, env)
		}
	}
}

// TestGitUsesLogins runs git with two repositories of one server and different credentials for each.
func TestGitUsesLogins(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	var mu sync.Mutex
	got := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, ok := r.BasicAuth()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		got[strings.TrimSuffix(r.URL.Path, "/info/refs")] = user + ":" + password
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://")
	plain, env := process.GitLogins("http://ann:one@"+at+"/one.git", "git+http://bob:t%20wo@"+at+"/two.git@main")
	for _, url := range []string{plain[0], strings.TrimSuffix(strings.TrimPrefix(plain[1], "git+"), "@main"),
		server.URL + "/other"} {
		cmd := exec.Command("git", "ls-remote", url)
		cmd.Env = append(append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=/dev/null"), env...)
		_ = cmd.Run() // the server has no repository
	}
	mu.Lock() // git may have disconnected before the server ends its response
	defer mu.Unlock()
	for path, want := range map[string]string{"/one.git": "ann:one", "/two.git": "bob:t wo", "/other": "ann:one"} {
		if got[path] != want {
			t.Errorf("git logs in at %s as %q, want %q", path, got[path], want)
		}
	}
}
