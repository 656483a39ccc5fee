package main

import (
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// TestGuestsMoveWhenTheirNodeHasStoppedThem moves guests between nodes whose reports are in the store.
func TestGuestsMoveWhenTheirNodeHasStoppedThem(t *testing.T) {
	s := newCloud(t)
	s.sshKey("ann.pub", 1)
	s.expect(0, createWeb+" --node n1 --yes", "published cloud 4")
	s.expect(2, "guest move web1 n2 --yes", "has a disk with data on node n1")
	s.expect(0, "guest move web1 n2 --copy --dry-run", "node: n1 -> n2")
	s.expect(3, "guest move web1 n2 --copy --yes --wait 0s", "has not reported yet that it runs the published cloud")
	var g shownGuest
	s.json("guest info web1", &g)
	if g.Node != "n2" || g.From != "n1" || g.Health.Healthy {
		t.Errorf("the guest that waits is %+v", g)
	}
	s.expect(2, "guest move web1 n2 --empty --yes --wait 0s", "already, with a copy of its disk")
	n1 := s.rollingHost("cloud-prod-eu1-n1.example.com", artifact.Ref{Project: "cloud", Channel: "prod"}, "4")
	s.expect(3, "guest move web1 n2 --yes --wait 0s", "hint: ")
	n1.record("5", func(r *hostrecord.Record) { r.Outcome = "failed" })
	s.expect(3, "guest move web1 n2 --yes --wait 0s", "hint: ")
	n1.record("5", nil)
	s.expect(0, "guest move web1 n2 --yes --wait 0s", "published cloud 6")
	if !strings.Contains(s.err, "scp -3 root@192.0.2.1:/var/lib/machines/web1-") {
		t.Errorf("the move does not say how the disk is copied:\n%s", s.err)
	}
	if !strings.Contains(s.err, "'sync /var/lib/machines/web1-") {
		t.Errorf("the command does not sync the archive:\n%s", s.err)
	}
	s.expect(2, "guest drop web1 n1 --yes", "no report shows that guest web1 is healthy on node n2")
	s.rollingHost("shop-prod-eu1-web1", artifact.Ref{Project: "cloud", Channel: "prod"}, "5")
	s.expect(2, "guest drop web1 n1 --yes", "no report yet")
	s.expect(0, "guest drop web1 n1 --yes --unproven", "+ deleted")
	s.expect(0, "guest move web1 n1 --stopped --empty --yes", "published cloud 8")
	g = shownGuest{}
	s.json("guest info web1", &g)
	if g.Node != "n1" || g.From != "" || g.Moved == "" {
		t.Errorf("after a move from a node that is off, the guest is %+v", g)
	}
}

// TestGuestsThatReportAreHealthy reads what a guest reports of itself.
func TestGuestsThatReportAreHealthy(t *testing.T) {
	s := newCloud(t)
	s.sshKey("ann.pub", 1)
	s.expect(0, createWeb+" --node n1 --stateless --yes", "stateless: yes")
	s.expect(0, "guest info web1", "health:    no report yet")
	s.artifact("shop", "a shop")
	s.expect(0, "publish shop 1.0 @shop.tar.zst --channel prod", "")
	h := s.rollingHost("shop-prod-eu1-web1", artifact.Ref{Project: "shop", Channel: "prod"}, "1.0")
	s.expect(0, "guest info web1", "health:    healthy shop/prod 1.0, reported ")
	h.record("1.0", func(r *hostrecord.Record) { r.Outcome = "failed" })
	var g shownGuest
	s.json("guest info web1", &g)
	if g.Health.Healthy || g.Health.State != "failed" {
		t.Errorf("a guest whose run failed is %+v", g.Health)
	}
	h.record("1.0", nil)
	s.expect(0, "guest move web1 n2 --stopped --yes", "node: n1 -> n2")
	s.json("guest info web1", &g)
	if g.Health.Healthy {
		t.Errorf("a report of the guest on its node before makes it healthy on the new one: %+v", g.Health)
	}
}

func TestEvacuatedNodesGetNoGuests(t *testing.T) {
	s := newCloud(t)
	s.sshKey("ann.pub", 1)
	s.expect(0, createWeb+" --node n1 --stateless --yes", "")
	s.expect(0, "guest create db1 --project shop --env prod --image bookworm --node n1 --yes", "")
	s.expect(2, "node evacuate n1 --yes", "give --off if the node is off")
	s.expect(0, "node evacuate n1 --off --yes", "guests with data stay on node n1: db1")
	var g shownGuest
	s.json("guest info web1", &g)
	if g.Node != "n2" || len(g.Old) != 1 {
		t.Errorf("the guest without data is %+v", g)
	}
	s.expect(2, "node rm n1 --yes", "node n1 has guests: db1")
	s.expect(0, "guest delete db1 --yes", "")
	s.expect(2, "node rm n1 --yes", "has disks of guests that moved away: web1")
	s.expect(2, "guest create web2 --project shop --env prod --image bookworm --node n1 --yes", "takes no more guests")
	s.expect(0, "node open n1 --yes", "closed: yes ->")
	s.expect(0, "guest create web2 --project shop --env prod --image bookworm --node n1 --yes", "published")
}

// TestAddressesOfIPv6AreInBrackets moves a disk between nodes that have addresses of both kinds.
func TestAddressesOfIPv6AreInBrackets(t *testing.T) {
	s := newCloud(t)
	s.sshKey("ann.pub", 1)
	s.expect(0, "node add n3 --mode prod --region eu1 --address 2001:db8::3 --yes", "")
	s.expect(0, createWeb+" --node n1 --yes", "")
	s.expect(0, "guest move web1 n3 --copy --stopped --yes", "")
	for _, want := range []string{"root@[2001:db8::3]:/var/lib/machines/web1-", "ssh root@2001:db8::3 "} {
		if !strings.Contains(s.err, want) {
			t.Errorf("the command lacks %s:\n%s", want, s.err)
		}
	}
}

// TestReportsCountFromAMarginAfterTheMove compares the store's time of a report with an operator's time of the move.
func TestReportsCountFromAMarginAfterTheMove(t *testing.T) {
	moved := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for by, want := range map[time.Duration]bool{-time.Hour: false, 9 * time.Minute: false, 11 * time.Minute: true} {
		if got := since(moved.Add(by), moved.Format(time.RFC3339)); got != want {
			t.Errorf("a report %s after the move counts: %v", by, got)
		}
	}
	if !since(moved, "") {
		t.Error("a report of a guest that has not moved does not count")
	}
}
