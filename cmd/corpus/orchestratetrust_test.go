package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOrchestrateRefusesTreesOfOtherUsers checks that a tree, its pillar, the targets of its links, files given by name
// and a minion's configuration are not used, not even for a plan, while another user can change them.
func TestOrchestrateRefusesTreesOfOtherUsers(t *testing.T) {
	set := []string{"shop", "--set", "service_instance=testing", "--test"}
	for _, c := range []struct {
		open string // path that others may write to, below the directory of the test
		mode os.FileMode
		args []string
	}{
		{"tree", 0o757, nil},
		{"tree/shop.sls", 0o646, nil},
		{"tree/pillar", 0o757, nil},
		{"tree/pillar/p.sls", 0o646, nil},
		{"tree/host.sls", 0o646, nil}, // a template may include this file
		{"elsewhere/file.jinja", 0o646, nil},
		{"given.yaml", 0o646, []string{"--pillar", "given.yaml"}},
		{"conf/minion", 0o646, []string{"--tree", "", "-c", "conf"}},
		{"conf/minion.d/a.conf", 0o646, []string{"--tree", "", "-c", "conf"}},
	} {
		t.Run(c.open, func(t *testing.T) {
			o := newOrchestrator(t, tree())
			write := func(name, text string) {
				path := filepath.Join(o.dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write("elsewhere/file.jinja", "x")
			write("given.yaml", "delay: 4\n")
			write("conf/minion", "file_roots: {base: ["+o.dir+"/tree]}\npillar_roots: {base: ["+o.dir+"/tree/pillar]}\n")
			write("conf/minion.d/a.conf", "failhard: true\n")
			if err := os.Symlink("../elsewhere/file.jinja", filepath.Join(o.dir, "tree", "file.jinja")); err != nil {
				t.Fatal(err)
			}
			args := append([]string{}, set...)
			for _, a := range c.args {
				if a == "conf" || a == "given.yaml" {
					a = filepath.Join(o.dir, a)
				}
				args = append(args, a)
			}
			if out, errs := o.run(0, args...); !strings.Contains(out, "2 to make") {
				t.Fatalf("before, the plan is %s%s", out, errs)
			}
			o.queues.requests = 0
			if err := os.Chmod(filepath.Join(o.dir, c.open), c.mode); err != nil {
				t.Fatal(err)
			}
			if _, errs := o.run(2, args...); !strings.Contains(errs,
				"refused, since any user can change "+filepath.Join(o.dir, c.open)) ||
				!strings.Contains(errs, "hint: copy the tree") || o.queues.requests > 0 {
				t.Errorf("after %d requests the error is %s", o.queues.requests, errs)
			}
			if os.Geteuid() != 0 {
				return
			}
			if err := os.Chmod(filepath.Join(o.dir, c.open), c.mode&^0o022); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(filepath.Join(o.dir, c.open), 1234, 1234); err != nil {
				t.Fatal(err)
			}
			if _, errs := o.run(2, args...); !strings.Contains(errs, "since user 1234 can change") || o.queues.requests > 0 {
				t.Errorf("after %d requests the error is %s", o.queues.requests, errs)
			}
		})
	}
}

// TestOrchestrateRefusesRootsThatOthersCanMake checks that a directory of file_roots that does not exist is judged by
// the directory in which another user could make it.
func TestOrchestrateRefusesRootsThatOthersCanMake(t *testing.T) {
	for mode, refused := range map[os.FileMode]bool{0o755: false, 0o777: true, os.ModeSticky | 0o777: true} {
		o := newOrchestrator(t, tree())
		shared, conf := filepath.Join(o.dir, "shared"), filepath.Join(o.dir, "conf")
		if err := errors.Join(os.Mkdir(shared, 0o755), os.Chmod(shared, mode), os.Mkdir(conf, 0o755),
			os.WriteFile(filepath.Join(conf, "minion"), []byte("file_roots: {base: ["+o.dir+"/tree, "+shared+
				"/absent]}\npillar_roots: {base: ["+o.dir+"/tree/pillar]}\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
		code := 0
		if refused {
			code = 2
		}
		_, errs := o.run(code, "shop", "--set", "service_instance=testing", "--test", "--tree", "", "-c", conf)
		if refused && !strings.Contains(errs, "can change "+shared) {
			t.Errorf("with %v the error is %s", mode, errs)
		}
	}
}

// TestOrchestrateRefusesAWSFilesOfOtherUsers names files of AWS's configuration that other users can change, or make.
// They are refused, since they may name programs.
func TestOrchestrateRefusesAWSFilesOfOtherUsers(t *testing.T) {
	for _, c := range []struct {
		variable, path string
		mode           os.FileMode
	}{{"AWS_CONFIG_FILE", "open/config", 0o666}, {"AWS_SHARED_CREDENTIALS_FILE", "open/credentials", 0o666},
		{"AWS_CONFIG_FILE", "shared/absent", 0}, {"HOME", "shared", 0}} {
		o := newOrchestrator(t, tree())
		shared, path := filepath.Join(o.dir, "shared"), filepath.Join(o.dir, c.path)
		if err := errors.Join(os.Mkdir(filepath.Join(o.dir, "open"), 0o755), os.Mkdir(shared, 0o755),
			os.Chmod(shared, 0o777)); err != nil {
			t.Fatal(err)
		}
		if c.mode != 0 {
			if err := errors.Join(os.WriteFile(path, []byte("[default]\ncredential_process = touch "+o.dir+"/ran\n"), 0o600),
				os.Chmod(path, c.mode)); err != nil {
				t.Fatal(err)
			}
		}
		if c.variable == "HOME" {
			t.Setenv("AWS_CONFIG_FILE", "")
		}
		t.Setenv(c.variable, path)
		_, errs := o.run(2, "shop", "--set", "service_instance=testing", "--test")
		if !strings.Contains(errs, "AWS's configuration") || !strings.Contains(errs, " can change ") ||
			!strings.Contains(errs, "hint: let you and root alone") || o.queues.requests > 0 {
			t.Errorf("%s=%s gives %s", c.variable, path, errs)
		}
	}
}
