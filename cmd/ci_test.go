package cmd_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// ciJob is a job of a workflow file: its command lines, and the variables that each of them gets from secrets.
type ciJob struct {
	lines []string
	env   []map[string]string
}

// githubJobs reads packaging/ci/github.yml.
func githubJobs(t *testing.T) (env map[string]string, jobs map[string]ciJob) {
	t.Helper()
	var file struct {
		Name string
		On   map[string]any
		Env  map[string]string
		Jobs map[string]struct {
			RunsOn string `yaml:"runs-on"`
			Needs  string
			Steps  []struct {
				Uses, Run string
				Env       map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(page(t, "packaging/ci/github.yml")), &file); err != nil {
		t.Fatal(err)
	}
	jobs = map[string]ciJob{}
	for name, j := range file.Jobs {
		if j.RunsOn == "" || j.Needs != "" && file.Jobs[j.Needs].RunsOn == "" {
			t.Errorf("the job %s has no runner, or needs a job %q that does not exist", name, j.Needs)
		}
		var job ciJob
		for _, s := range j.Steps {
			if (s.Uses == "") == (s.Run == "") {
				t.Errorf("a step of %s has to have either uses or run", name)
			}
			if s.Run != "" {
				job.lines, job.env = append(job.lines, s.Run), append(job.env, s.Env)
			}
		}
		jobs[name] = job
	}
	return file.Env, jobs
}

// gitlabJobs reads packaging/ci/gitlab.yml, whose variables are those of the project's settings.
func gitlabJobs(t *testing.T) (env map[string]string, jobs map[string]ciJob) {
	t.Helper()
	var all map[string]yaml.Node
	if err := yaml.Unmarshal([]byte(page(t, "packaging/ci/gitlab.yml")), &all); err != nil {
		t.Fatal(err)
	}
	var stages []string
	jobs = map[string]ciJob{}
	for name, node := range all {
		var job struct {
			Stage  string
			Script []string
		}
		var err error
		switch name {
		case "stages":
			err = node.Decode(&stages)
		case "variables":
			err = node.Decode(&env)
		default:
			err = node.Decode(&job)
			jobs[name] = ciJob{lines: job.Script, env: make([]map[string]string, len(job.Script))}
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if strings.Join(stages, " ") != "check publish attest promote" {
		t.Errorf("the stages are %q", stages)
	}
	return env, jobs
}

// TestWorkflowsOfCIWork runs the command lines of both workflow files in the order of their stages, with the keys that
// they name, against a store in a directory. The host of testing deploys between publish and attest.
func TestWorkflowsOfCIWork(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(*testing.T) (map[string]string, map[string]ciJob){
		"github": githubJobs, "gitlab": gitlabJobs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, jobs := read(t)
			if env["CORPUS_STORE"] != "s3://bucket/prefix" || env["CORPUS_TRUST_ROOT"] != "root.json" || len(jobs) != 4 {
				t.Errorf("the variables are %v, with %d jobs", env, len(jobs))
			}
			r := newReader(t)
			r.otherRoot = true
			r.must("corpus keys new", "corpus store init", "corpus keys new attestation --keys keys",
				"corpus project add attestation --key keys/attestation.pub", "corpus build ./myapp --version 0.9 -o first.tar.zst",
				"corpus publish myapp 0.9 first.tar.zst", "corpus project require myapp production --from testing",
				"cp keys/root.json myapp/root.json")
			host := *r
			r.dir = filepath.Join(r.dir, "myapp")
			for _, stage := range []string{"check", "publish", "deploy", "attest", "promote"} {
				if stage == "deploy" {
					host.must("corpus-agent deploy --trust-root keys/root.json")
					continue
				}
				r.ciStage(name, jobs[stage], host.dir)
			}
			if out := host.must("corpus ls"); !strings.Contains(out, "myapp/production  1.1") {
				t.Errorf("production does not have the version of the tag: %s", out)
			}
		})
	}
}

// ciStage runs the lines of a job. A GitHub step gets the keys that it names, and a GitLab job all.
func (r *reader) ciStage(kind string, job ciJob, keys string) {
	r.t.Helper()
	if len(job.lines) < 2 {
		r.t.Errorf("the job has the lines %q", job.lines)
	}
	for i, line := range job.lines {
		if strings.Contains(line, "dpkg -i") {
			continue
		}
		step := *r
		step.env = append(step.env, "CORPUS_KEYS=", "CORPUS_TRUST_ROOT=root.json", "GITHUB_REF_NAME=v1.1",
			"CI_COMMIT_TAG=v1.1")
		for _, role := range []string{"myapp", "snapshot", "timestamp", "attestation"} {
			variable := "CORPUS_KEY_" + strings.ToUpper(role)
			secret, named := job.env[i][variable]
			if named && secret != "${{ secrets."+variable+" }}" {
				r.t.Errorf("%s of %q is %q", variable, line, secret)
			}
			data, err := os.ReadFile(filepath.Join(keys, "keys", role+".key"))
			if err != nil {
				r.t.Fatal(err)
			}
			if named || kind == "gitlab" {
				step.env = append(step.env, variable+"="+base64.StdEncoding.EncodeToString(data))
			}
		}
		step.must(line)
	}
}
