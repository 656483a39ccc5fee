package sbom_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/sbom"
)

// TestDocumentNamesTheModulesOfTheProgram compares the document of a program with the output of go list.
func TestDocumentNamesTheModulesOfTheProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "corpus-agent")
	run(t, "go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", program, "../../cmd/corpus-agent")
	d, err := sbom.Of(program, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if d.Metadata.Component.Version != "1.2.3" || !strings.HasSuffix(d.Metadata.Component.Name, "cmd/corpus-agent") {
		t.Errorf("the document is about %+v", d.Metadata.Component)
	}
	listed := map[string]bool{}
	for _, c := range d.Components {
		listed[c.Name+" "+c.Version] = true
		if c.Name != "std" && len(c.Hashes) != 1 {
			t.Errorf("%s has no checksum", c.Name)
		}
	}
	linked := strings.Fields(run(t, "go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}", "../../cmd/corpus-agent"))
	if len(linked) < 20 {
		t.Fatalf("go list finds %d modules", len(linked))
	}
	for _, m := range linked {
		if !listed[strings.Replace(m, "@", " ", 1)] {
			t.Errorf("the document lacks %s", m)
		}
	}
	again, err := sbom.Of(program, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := d.JSON()
	b, _ := again.JSON()
	if string(a) != string(b) {
		t.Error("the same program gives different documents")
	}
}

// TestSignature signs checksums as a release does, and verifies them as documented in docs/packages.md.
func TestSignature(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	dir := t.TempDir()
	key, sums, signers := filepath.Join(dir, "key"), filepath.Join(dir, "SHA256SUMS"),
		filepath.Join(dir, "allowed_signers")
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{sums: "0000  file\n", signers: "release@corpus-agent " + string(public)} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := sign("", sums, "false"); err == nil || !strings.Contains(out, "hint:") {
		t.Errorf("a release without a key is signed: %s", out)
	}
	if out, err := sign("", sums, "true"); err != nil || !strings.Contains(out, "not signed") {
		t.Errorf("a snapshot without a key: %v, %s", err, out)
	}
	if out, err := sign(key, sums, "false"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	verify := func() error {
		in, err := os.Open(sums)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		cmd := exec.Command("ssh-keygen", "-Y", "verify", "-f", signers, "-I", "release@corpus-agent", "-n",
			"corpus-agent-release", "-s", sums+".sig")
		cmd.Stdin = in
		return cmd.Run()
	}
	if err := verify(); err != nil {
		t.Errorf("the signature does not verify: %v", err)
	}
	if err := os.WriteFile(sums, []byte("1111  file\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if verify() == nil {
		t.Error("changed checksums verify")
	}
}

func sign(key, sums, snapshot string) (string, error) {
	cmd := exec.Command("../sign", sums, snapshot)
	cmd.Env = append(os.Environ(), "CORPUS_SIGNING_KEY="+key)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var output strings.Builder // go prints warnings there, for example about a module cache that it may not write to
	cmd.Stderr = &output
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, output.String())
	}
	return string(out)
}
