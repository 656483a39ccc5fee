package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging"
)

func bootstrap() packaging.Bootstrap {
	return packaging.Bootstrap{
		Store: "s3://bootstrap-bucket-of-a-company/prefix/with/parts?region=us-east-1",
		Root:  "sha256:" + strings.Repeat("ab", 32),
		Agent: "https://downloads.example.com/corpus-agent/1.0.0/corpus-agent_1.0.0_linux_amd64",
		Sum:   strings.Repeat("cd", 32), Balance: true,
	}
}

func TestUserDataIsAShortShellScript(t *testing.T) {
	for name, agent := range map[string]string{"binary": "",
		"package": "https://example.com/corpus-agent_1.0.0_amd64.deb?token=a'b"} {
		b := bootstrap()
		if agent != "" {
			b.Agent = agent
		}
		text, err := b.UserData()
		if err != nil || len(text) > 2048 {
			t.Fatalf("%s: %d bytes, %v", name, len(text), err)
		}
		cmd := exec.Command("sh", "-n")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", name, err, out, text)
		}
	}
}

// firstBoot runs the user data with programs that record their calls. deploy ends with each of the given codes in turn.
func firstBoot(t *testing.T, b packaging.Bootstrap, codes string) (calls string, err error) {
	t.Helper()
	text, err := b.UserData()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	for name, body := range map[string]string{
		"curl":      `while [ "$1" != -o ]; do shift; done; printf agent > "$2"`,
		"sleep":     "",
		"systemctl": `echo "systemctl $*" >> ` + log,
		"install":   `echo install >> ` + log,
		"dpkg":      `echo "dpkg $1" >> ` + log,
		"corpus-agent": `echo "$*" >> ` + log + "\n[ $1 = deploy ] || exit 0\nread c rest < " + dir +
			"/codes\necho $rest > " + dir + "/codes\nexit $c",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "codes"), []byte(codes+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// Units would be written below /etc, so the test only uses packages.
	cmd := exec.Command("sh")
	cmd.Stdin = strings.NewReader(text)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TMPDIR="+dir)
	err = cmd.Run()
	data, _ := os.ReadFile(log)
	return string(data), err
}

func debian() packaging.Bootstrap {
	b := bootstrap()
	b.Agent = "https://example.com/corpus-agent.deb"
	b.Sum = "d4f0bc5a29de06b510f9aa428f1eedba926012b591fef7a518e776a7c9bd1824" // of "agent"
	return b
}

func TestHostJoinsLoadBalancerAfterSuccess(t *testing.T) {
	calls, err := firstBoot(t, debian(), "5 5 0")
	if err != nil || strings.Count(calls, "deploy --store") != 3 ||
		!strings.HasSuffix(calls, "systemctl enable --now corpus-agent.timer\nelb register\n") {
		t.Errorf("a store that is down at first: %v\n%s", err, calls)
	}
	calls, err = firstBoot(t, debian(), "3")
	if err == nil || strings.Contains(calls, "elb register") || !strings.Contains(calls, "corpus-agent.timer") {
		t.Errorf("a first run that fails: %v\n%s", err, calls)
	}
}

func TestAgentWithAnotherDigestIsNotInstalled(t *testing.T) {
	b := debian()
	b.Sum = strings.Repeat("0", 64)
	calls, err := firstBoot(t, b, "0")
	if err == nil || calls != "" {
		t.Errorf("%v\n%s", err, calls)
	}
}

func TestBootstrapIsChecked(t *testing.T) {
	for name, change := range map[string]func(*packaging.Bootstrap){
		"no agent":         func(b *packaging.Bootstrap) { b.Agent = "corpus-agent.deb" },
		"no digest":        func(b *packaging.Bootstrap) { b.Sum = "abc" },
		"only the service": func(b *packaging.Bootstrap) { b.Service = "myapp" },
		"two lines":        func(b *packaging.Bootstrap) { b.Store += "\nrm -rf x" },
		"more than 2 KiB":  func(b *packaging.Bootstrap) { b.Store += strings.Repeat("x", 2000) },
	} {
		b := bootstrap()
		change(&b)
		if _, err := b.UserData(); err == nil {
			t.Errorf("%s: the user data is generated without an error", name)
		}
	}
}
