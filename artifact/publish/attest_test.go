package publish_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

var testStage = artifact.Ref{Project: "myapp", Channel: "testing"}

// proving is a store with an attestation key and one release on testing.
func proving(t *testing.T) (*artifacttest.Repo, artifact.Release) {
	t.Helper()
	repo := artifacttest.New(t)
	r := repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
	if _, err := repo.Keys.New(trust.AttestationRole, 1); err != nil {
		t.Fatal(err)
	}
	keys, err := repo.Keys.Public(trust.AttestationRole)
	if err != nil {
		t.Fatal(err)
	}
	if err := repo.AddProject(t.Context(), trust.AttestationRole, 0, keys...); err != nil {
		t.Fatal(err)
	}
	return repo, r
}

func healthyOn(hosts ...string) (list []trust.Healthy) {
	for _, h := range hosts {
		list = append(list, trust.Healthy{Host: h, Run: "r", At: time.Now().UTC().Truncate(time.Second)})
	}
	return list
}

// grounds tells why production points where it does.
func grounds(t *testing.T, repo *artifacttest.Repo) trust.Grounds {
	t.Helper()
	client, err := repo.Host().Client()
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list[0].Grounds["production"]
}

func TestAProofThereIsIsTakenInBeforeItIsRequired(t *testing.T) {
	repo, one := proving(t)
	if _, err := repo.Attest(t.Context(), testStage, one, healthyOn("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Promote(t.Context(), "myapp", "testing", "production"); err != nil {
		t.Fatal(err)
	}
	required, err := repo.Require(t.Context(), artifact.Ref{Project: "myapp", Channel: "production"}, &trust.Requirement{From: "testing", Hosts: 1, Fresh: 7, Holds: 90})
	if err != nil || required.Refused != "" {
		t.Fatalf("requiring what is proven says %+v, %v", required, err)
	}
	if _, err := repo.Host().Resolve("myapp/production"); err != nil {
		t.Error(err)
	}
	required, err = repo.Require(t.Context(), artifact.Ref{Project: "myapp", Channel: "production"}, &trust.Requirement{From: "testing", Hosts: 2, Fresh: 7, Holds: 90})
	if err != nil || !strings.Contains(required.Refused, "it names 1 host, and 2 are wanted") || required.Hint == "" {
		t.Errorf("requiring more than is proven says %+v, %v", required, err)
	}
}

func TestTooFewHostsAttestNothing(t *testing.T) {
	repo, one := proving(t)
	if _, err := repo.Require(t.Context(), artifact.Ref{Project: "myapp", Channel: "production"}, &trust.Requirement{From: "testing", Hosts: 3, Fresh: 7, Holds: 90}); err != nil {
		t.Fatal(err)
	}
	_, err := repo.Attest(t.Context(), testStage, one, healthyOn("a", "b"))
	if err == nil || !strings.Contains(err.Error(), "2 of 3 hosts") || diag.HintOf(err) == "" {
		t.Errorf("attesting with two hosts of three: %v, hint %q", err, diag.HintOf(err))
	}
}

func TestProofsAreRenewedBeforeTheyExpire(t *testing.T) {
	repo, one := proving(t)
	production := artifact.Ref{Project: "myapp", Channel: "production"}
	if _, err := repo.Require(t.Context(), production, &trust.Requirement{From: "testing", Hosts: 1, Fresh: 7, Holds: 10}); err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Attest(t.Context(), testStage, one, healthyOn("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Promote(t.Context(), "myapp", "testing", "production"); err != nil {
		t.Fatal(err)
	}
	due := func(within time.Duration) (left []publish.Standing) {
		t.Helper()
		list, err := repo.Refresh(t.Context(), within)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if s.Left {
				left = append(left, s)
			}
		}
		return left
	}
	if left := due(24 * time.Hour); len(left) != 0 {
		t.Errorf("ten days before, refreshing leaves %+v", left)
	}
	left := due(12 * 24 * time.Hour)
	if len(left) != 1 || left[0].Role != "the proof of myapp/production" || !strings.Contains(left[0].Why, "corpus attest myapp testing --renew") {
		t.Fatalf("refreshing leaves %+v, want the proof", left)
	}
	before := grounds(t, repo)
	attester := repo.As(trust.AttestationRole)
	attester.Now = artifacttest.Later(9)
	renewed, err := attester.Renew(t.Context(), testStage)
	if err != nil || len(renewed) != 1 {
		t.Fatalf("renewing gives %+v, %v", renewed, err)
	}
	if _, err := repo.Promote(t.Context(), "myapp", "production", "production"); err != nil {
		t.Fatal(err)
	}
	after := grounds(t, repo)
	if !after.Proof.Expires.After(before.Proof.Expires) || !after.Proof.At.Equal(before.Proof.At) || after.Refused != "" {
		t.Errorf("renewing made of %+v %+v", before.Proof, after.Proof)
	}
	if left := due(12 * 24 * time.Hour); len(left) != 0 {
		t.Errorf("then refreshing leaves %+v", left)
	}
}

func TestSeveralAttestAtTheSameTime(t *testing.T) {
	repo, one := proving(t)
	if _, err := repo.Require(t.Context(), artifact.Ref{Project: "myapp", Channel: "production"}, &trust.Requirement{From: "testing", Hosts: 1, Fresh: 7, Holds: 10}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 3)
	for _, host := range []string{"a", "b", "c"} { // three who attest at the same time
		p := repo.As(trust.AttestationRole)
		go func() { _, err := p.Attest(t.Context(), testStage, one, healthyOn(host)); done <- err }()
	}
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if _, err := repo.Promote(t.Context(), "myapp", "testing", "production"); err != nil {
		t.Error(err)
	}
}
