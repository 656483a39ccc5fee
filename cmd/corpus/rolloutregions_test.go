package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// storeWithTwoReleases returns a store with the releases 1.0 and 1.1 of myapp, of which production names the first.
func storeWithTwoReleases(t *testing.T) *shell {
	t.Helper()
	s := newStore(t)
	for _, version := range []string{"1.0", "1.1"} {
		s.artifact(version, version)
		s.expect(0, "publish myapp "+version+" @"+version+".tar.zst", "")
	}
	s.expect(0, "point myapp production 1.0", "")
	return s
}

// TestRegionsOfAPlanAreTakenInOrder checks that the plan shows the order of regions, and that a rollout takes them in
// that order, each as a whole, and the other regions after them.
func TestRegionsOfAPlanAreTakenInOrder(t *testing.T) {
	s := storeWithTwoReleases(t)
	const plan = "project rollout myapp production"
	s.expect(0, plan+" --waves 30%:0s,60%:0s,100% --healthy 100% --regions uswest2,euwest1 --agent dev",
		"regions in this order: uswest2, euwest1")
	s.expect(0, plan, "regions in this order: uswest2, euwest1")
	ref := artifact.Ref{Project: "myapp", Channel: "production"}
	byRegion := map[string][]*rollingHost{}
	for _, region := range []string{"apsouth1", "euwest1", "uswest2"} {
		for _, n := range []string{"1", "2", "3"} {
			byRegion[region] = append(byRegion[region], s.rollingHost("myapp-production-"+region+"-"+n, ref, "1.0"))
		}
	}
	s.expect(0, "point myapp production 1.1", "its rollout to 9 hosts in 3 waves (3, 3, 3)")
	for wave, region := range []string{"uswest2", "euwest1", "apsouth1"} {
		s.expect(0, statusLine, "")
		for other, all := range byRegion {
			for _, h := range all {
				if waits := strings.Contains(s.out, "waits for "+h.name+" in wave"); waits != (other == region) {
					t.Errorf("wave %d: %s may take the release: %v\n%s", wave+1, h.name, waits, s.out)
				}
			}
		}
		for _, h := range byRegion[region] {
			h.record("1.1", nil)
			h.result(hosts.Healthy)
		}
	}
	s.expect(0, statusLine, "rollout of 1.1 is finished")
}

// TestHostsThatCouldNotBeginAreShown checks what `corpus host show` and the page of a host say of a run that could not
// begin: its time and its error, and not the ID of the run before.
func TestHostsThatCouldNotBeginAreShown(t *testing.T) {
	s, a, _ := rollingStore(t)
	a.age(1)
	w := hostrecord.Writer{Store: a.store, Key: a.key, File: a.file}
	detail := hostrecord.Detail{Error: "no space left on device", Hint: "make room in /var"}
	if err := w.WriteFailure(t.Context(), "myapp", a.name, detail); err != nil {
		t.Fatal(err)
	}
	s.expect(0, "host show "+a.name, "could not begin, or not write to its disk, at 20")
	shown := s.out
	s.expect(0, "fleet --html @pages --trust-root @keys/root.json", "wrote pages of 2 hosts")
	page := s.read("pages/host/" + a.name + "/index.html")
	for _, want := range []string{"failed", "could not begin, or not write to its disk, at 20", "no space left on device",
		"make room in /var"} {
		if !strings.Contains(shown, want) || !strings.Contains(page, want) {
			t.Errorf("%q is missing in\n%s\nor in\n%s", want, shown, page)
		}
	}
	for _, text := range []string{shown, page} {
		if strings.Contains(text, a.run) {
			t.Errorf("the run %s is named:\n%s", a.run, text)
		}
	}
}

// TestChangedPlanMovesNoHost changes the plan of a rollout under way, and of one that is finished.
func TestChangedPlanMovesNoHost(t *testing.T) {
	s := storeWithTwoReleases(t)
	const plan = "project rollout myapp production"
	s.expect(0, plan+" --waves 50%:0s,100% --healthy 75% --agent dev --halt-at 9", "")
	ref := artifact.Ref{Project: "myapp", Channel: "production"}
	byName := map[string]*rollingHost{}
	for i := range 8 {
		name := fmt.Sprintf("myapp-production-useast1-%d", i+1)
		byName[name] = s.rollingHost(name, ref, "1.0")
	}
	s.expect(0, "point myapp production 1.1", "its rollout to 8 hosts in 2 waves (4, 4)")
	r, _ := s.rollout(byName["myapp-production-useast1-1"].store)
	order := [2][]*rollingHost{}
	for _, h := range r.Roster.Places() {
		order[r.Wave(h)] = append(order[r.Wave(h)], byName[h.Name])
	}
	s.expect(0, plan+" --canary "+order[1][0].name, "--canary, --last and --regions count from the next rollout on")
	for i, h := range order[0] {
		s.expect(0, statusLine, "waits for "+h.name+" in wave 1")
		outcome := hosts.Healthy
		if i == 3 {
			outcome = hosts.Failed
		} else {
			s.lacks("waits for " + order[1][0].name)
		}
		h.result(outcome)
	}
	for _, h := range order[1] {
		h.record("1.1", nil)
		h.result(hosts.Healthy)
	}
	for _, change := range []string{"--last " + order[0][0].name, "--regions uswest2,useast1", "--healthy 100%",
		"--halt-at 1", "--healthy 75% --halt-at 9",
		"--waves 10%:0s,20%:0s,30%:0s,40%:0s,50%:0s,60%:0s,80%:0s,100%"} {
		s.expect(0, plan+" "+change, "")
		s.expect(0, statusLine, "rollout of 1.1 is finished")
		s.expect(0, "fleet --trust-root @keys/root.json", "")
		s.lacks("stuck")
		s.lacks("halted")
	}
}
