package session_test

import (
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// gitRepository commits files to a branch of a new repository, which is bare, and returns its path.
func gitRepository(t *testing.T, branch string, files map[string]string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("this host has no git")
	}
	tree, bare := t.TempDir(), filepath.Join(t.TempDir(), "pillar.git")
	for name, text := range files {
		file := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		target, link := strings.CutPrefix(text, "-> ")
		err := os.WriteFile(file, []byte(text), 0o644)
		if link {
			_ = os.Remove(file)
			err = os.Symlink(target, file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=" + branch, tree}, {"-C", tree, "add", "--all"},
		{"-C", tree, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "--message=x"},
		{"clone", "--quiet", "--bare", tree, bare},
	} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	return bare
}

// gitPillar returns the pillar of a session whose only source has an argument, as YAML text would give it.
func gitPillar(t *testing.T, argument ...any) (string, error) {
	t.Helper()
	set, _ := settings(t, map[string]string{"pillar/top.sls": "base: {'*': [p]}\n", "pillar/p.sls": "role: web\n"})
	set.Redactor = &redact.Redactor{}
	set.Options = value.NewMap("ext_pillar", value.NewList(value.NewMap("git", value.NewList(argument...))))
	s := families.New(set)
	t.Cleanup(s.Close)
	data, err := s.Pillar(t.Context())
	return value.Repr(data), err
}

func parameters(pairs ...any) *value.List {
	list := value.NewList()
	for i := 0; i < len(pairs); i += 2 {
		list.Items = append(list.Items, value.NewMap(pairs[i], pairs[i+1]))
	}
	return list
}

// TestRepositoriesGivePillarData reads repositories with a directory, a mount point, another environment, links, and
// templates that see the pillar so far.
func TestRepositoriesGivePillarData(t *testing.T) {
	main := gitRepository(t, "master", map[string]string{
		"top.sls":     "base: {'*': [a, web.nginx, linked]}\n",
		"a.sls":       "{% import_yaml 'data/x.yaml' as x %}\na: {{ x.value }}\nrole_seen: {{ pillar.role }}\n",
		"data/x.yaml": "value: 7\n",
		"b/real.sls":  "linked: true\n",
		"linked.sls":  "-> b/real.sls",
		"ä.txt":       "any name",
	})
	mounted := gitRepository(t, "master", map[string]string{"nginx.sls": "port: 80\n", "top.sls": "base: {'*': [none]}\n"})
	qa := gitRepository(t, "main", map[string]string{"deep/p/top.sls": "prod: {'*': [c]}\n", "deep/p/c.sls": "c: 1\n",
		"top.sls": "not: [valid"})
	for _, url := range []string{"", "file://"} {
		got, err := gitPillar(t, "master "+url+main,
			value.NewMap("master "+url+mounted, parameters("mountpoint", "web/")),
			value.NewMap("main "+url+qa, parameters("root", "/deep/p", "env", "prod", "name", "second")))
		const want = "{'role': 'web', 'a': 7, 'role_seen': 'web', 'port': 80, 'linked': True, 'c': 1}"
		if err != nil || got != want {
			t.Errorf("%v, hint %q\n got %s\nwant %s", err, diag.HintOf(err), got, want)
		}
	}
	left, err := filepath.Glob("/tmp/.corpus-tmp-pillar-*")
	if err != nil || len(left) > 0 {
		t.Errorf("%q remain, %v", left, err)
	}
}

// TestARepositoryThatCannotBeReadFailsThePillar checks that errors name the file, or the source and the mistake.
func TestARepositoryThatCannotBeReadFailsThePillar(t *testing.T) {
	repository := gitRepository(t, "main", map[string]string{"top.sls": "main: {'*': [a]}\n", "a.sls": "a: [1\n",
		"out/top.sls": "main: {'*': [o]}\n", "out/o.sls": "-> ../../../../../../../../etc/passwd"})
	for _, c := range []struct {
		item any
		want string
	}{
		{"main " + repository, repository + ":/a.sls:1"},
		{"none " + repository, "couldn't find remote ref none"},
		{"main " + repository + "x", repository + "x"},
		{value.NewMap("main "+repository, parameters("root", "out")), "/o.sls is a link to a file that does not exist"},
		{value.NewMap("main "+repository, parameters("root", "nowhere")), "there is no directory nowhere"},
		{value.NewMap("main "+repository, parameters("rooot", "x")), "no parameter rooot"},
		{value.NewMap("main git@example.com:x.git", parameters("passphrase", "p")), "passphrase"},
		{repository, "not a branch and the URL"},
		{"main http://git.example.com/x.git", "could change what comes without"},
		{"main git://git.example.com/x.git", "could change what comes without"},
		{"main ext::sh%20-c%20id", "not the URL of a repository"},
		{"main --upload-pack=id", "not the URL of a repository"},
		{"--upload-pack=id " + repository, "not the name of a branch"},
		{"main https://127.0.0.1:1/x.git", "127.0.0.1"},
	} {
		got, err := gitPillar(t, c.item)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "git:") ||
			!strings.Contains(err.Error(), ":/") && !strings.Contains(err.Error(), "ext_pillar git: ") {
			t.Errorf("%v: %v, hint %q, want %q: %s", value.Repr(c.item), err, diag.HintOf(err), c.want, got)
		}
	}
}

// TestARepositoryNeedsItsPassword serves a repository over HTTP to one user, whose password no output has.
func TestARepositoryNeedsItsPassword(t *testing.T) {
	repository := gitRepository(t, "main", map[string]string{"top.sls": "base: {'*': [a]}\n", "a.sls": "a: 1\n"})
	backend := &cgi.Handler{Path: "/usr/lib/git-core/git-http-backend",
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(repository), "GIT_HTTP_EXPORT_ALL=1"}}
	if _, err := os.Stat(backend.Path); err != nil {
		t.Skip("this host has no git-http-backend")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "deploy" || password != "s3cr3t-word" {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	for _, c := range []struct{ url, user, password, fails string }{
		{server.URL, "deploy", "s3cr3t-word", ""},
		{strings.Replace(server.URL, "http://", "http://deploy:s3cr3t-word@", 1), "", "", ""},
		{server.URL, "deploy", "s3cr3t-wrong", "Authentication failed"},
		{server.URL, "", "", "could not read Username"},
	} {
		got, err := gitPillar(t, value.NewMap("main "+c.url+"/pillar.git", parameters("env", "base", "user", c.user,
			"password", c.password, "insecure_auth", true)))
		switch {
		case c.fails == "" && (err != nil || got != "{'role': 'web', 'a': 1}"):
			t.Errorf("%s: %v: %s", c.url, err, got)
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: %v, want %q", c.url, err, c.fails)
		case err != nil && strings.Contains(err.Error(), "s3cr3t"):
			t.Errorf("the error has the password: %v", err)
		}
	}
}

// TestARepositoryOfAnotherUserIsNoPillarData reads a repository that an unprivileged user can change.
func TestARepositoryOfAnotherUserIsNoPillarData(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this requires root")
	}
	repository := gitRepository(t, "main", map[string]string{"top.sls": "main: {'*': [a]}\n", "a.sls": "a: 1\n"})
	if err := os.Chown(filepath.Join(repository, "refs/heads"), nobody, nobody); err != nil {
		t.Fatal(err)
	}
	got, err := gitPillar(t, "main "+repository)
	if err == nil || !strings.Contains(err.Error(), repository) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v: %s", err, got)
	}
}

// TestARepositoryThatRefersToAnotherUsersIsNoPillarData reads repositories of root whose files name a directory that an
// unprivileged user can change.
func TestARepositoryThatRefersToAnotherUsersIsNoPillarData(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this requires root")
	}
	for name, refer := range map[string]func(theirs, own string) map[string]string{
		"commondir": func(theirs, own string) map[string]string {
			return map[string]string{own + "/HEAD": "ref: refs/heads/main\n", own + "/commondir": theirs + "\n"}
		},
		"file": func(theirs, own string) map[string]string {
			return map[string]string{own + "/.git": "gitdir: " + own + "/g\n", own + "/g/HEAD": "ref: refs/heads/main\n",
				own + "/g/commondir": theirs + "\n"}
		},
		"alternates": func(theirs, own string) map[string]string {
			head, _ := os.ReadFile(filepath.Join(theirs, "refs/heads/main"))
			packed, _ := os.ReadFile(filepath.Join(theirs, "packed-refs"))
			return map[string]string{own + "/HEAD": "ref: refs/heads/main\n", own + "/packed-refs": string(packed),
				own + "/refs/heads/main":         string(head),
				own + "/objects/info/alternates": "# borrowed\n" + theirs + "/objects\n"}
		},
	} {
		repository := gitRepository(t, "main", map[string]string{"top.sls": "base: {'*': [a]}\n", "a.sls": "a: 1\n"})
		own := filepath.Join(t.TempDir(), "own")
		if err := os.MkdirAll(filepath.Join(own, "refs"), 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range refer(repository, own) {
			if text == "" {
				continue
			}
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		url := "main file://" + strings.Replace(own, "own", "%6fwn", 1)
		if got, err := gitPillar(t, value.NewMap(url, parameters("base", "main"))); err != nil ||
			!strings.Contains(got, "'a': 1") {
			t.Errorf("%s of root: %v: %s", name, err, got)
		}
		if err := os.Chown(filepath.Join(repository, "objects"), nobody, nobody); err != nil {
			t.Fatal(err)
		}
		got, err := gitPillar(t, value.NewMap(url, parameters("base", "main")))
		if err == nil || !strings.Contains(err.Error(), "refused, since "+repository) {
			t.Errorf("%s: %v: %s", name, err, got)
		}
	}
}

// TestRepositoryBranches reads the branch of the environment, and the fallback of a branch that does not exist.
func TestRepositoryBranches(t *testing.T) {
	repository := gitRepository(t, "main", map[string]string{"top.sls": "base: {'*': [b]}\n", "b.sls": "b: fallback\n"})
	got, err := gitPillar(t, value.NewMap("absent "+repository, parameters("fallback", "main", "env", "base")))
	if err != nil || got != "{'role': 'web', 'b': 'fallback'}" {
		t.Errorf("with a fallback: %s, %v", got, err)
	}
	if got, err = gitPillar(t, value.NewMap("absent "+repository, parameters("fallback", "none"))); err == nil {
		t.Errorf("without a branch: %s", got)
	}
	repository = gitRepository(t, "dev", map[string]string{"top.sls": "dev: {'*': [a]}\n", "a.sls": "a: dev\n"})
	set, _ := settings(t, nil)
	set.Options = value.NewMap("pillarenv", "dev", "ext_pillar",
		value.NewList(value.NewMap("git", value.NewList("__env__ "+repository))))
	s := families.New(set)
	defer s.Close()
	if data, err := s.Pillar(t.Context()); err != nil || data.Value("a") != "dev" {
		t.Errorf("of the environment dev: %s, %v", value.Repr(data), err)
	}
}

// TestRepositoryOverSSH reads a repository through a program in the place of ssh, and checks which key that gets.
func TestRepositoryOverSSH(t *testing.T) {
	repository := gitRepository(t, "master", map[string]string{"top.sls": "base: {'*': [a]}\n", "a.sls": "a: ssh\n"})
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	ssh := "#!/bin/sh\nprintf '%s\\n' \"$@\" >" + dir + "/arguments\nfor last; do :; done\nexec sh -c \"$last\"\n"
	for name, mode := range map[string]os.FileMode{"ssh": 0o755, "key": 0o600} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(ssh), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, url := range []string{"ssh://git@host.example.com" + repository, "git@host.example.com:" + repository} {
		got, err := gitPillar(t, value.NewMap("master "+url, parameters("privkey", key)))
		arguments, _ := os.ReadFile(filepath.Join(dir, "arguments"))
		if err != nil || got != "{'role': 'web', 'a': 'ssh'}" {
			t.Errorf("%s: %s, %v", url, got, err)
		}
		for _, want := range []string{key, "git@host.example.com", "BatchMode=yes", "IdentitiesOnly=yes"} {
			if !strings.Contains(string(arguments), want) {
				t.Errorf("%s: ssh got %q, want %s", url, arguments, want)
			}
		}
	}
}
