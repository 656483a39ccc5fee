package guest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module/guest"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// aside is where the disk of web1 is kept while another guest has its name.
const aside = "/var/lib/machines/.kept-web1-" + idA

// another returns the arguments of another guest with the name of web1.
func another(driver string) *value.Map {
	args := web1(driver)
	args.Set("id", idB)
	return args
}

// TestDisksThatWerePutAsideComeBack lets another guest take the name of web1, and web1 take it again, as rollbacks
// of the cloud do. Each step is stopped, and done again.
func TestDisksThatWerePutAsideComeBack(t *testing.T) {
	const driver = "nspawn"
	for step, more := 0, true; more; step++ {
		h := nodeWithGuest(t, driver)
		more = stopAt(t, h, step, "present", another(driver))
		hosttest.Converge(t, h.Host, guest.Functions(), "present", another(driver))
		if h.Text(aside+"/srv/data") != "orders" || h.Text("/var/lib/machines/web1/etc/machine-id") != idB+"\n" ||
			h.Text(data) != "" || strings.Contains(h.Text("/units"), "active enabled") {
			t.Fatalf("stopped at step %d: the disk was not put aside, or the guest runs: %q", step, h.Text("/units"))
		}
		more = stopAt(t, h, step, "present", web1(driver)) || more
		hosttest.Converge(t, h.Host, guest.Functions(), "present", web1(driver))
		if h.Text(data) != "orders" || h.Text(strings.Replace(aside, idA, idB, 1)+"/etc/machine-id") != idB+"\n" {
			t.Fatalf("stopped at step %d: the disk did not come back", step)
		}
		only := value.NewMap("name", "guests", "guests", value.NewList(idA), "deleted", value.NewList(idB))
		more = stopAt(t, h, step, "only", only) || more
		hosttest.Converge(t, h.Host, guest.Functions(), "only", only)
		if names, _ := h.Files.ReadDir("/var/lib/machines"); len(names) != 1 || h.Text(data) != "orders" {
			t.Errorf("stopped at step %d: there are %v", step, names)
		}
		if !more && step < 6 {
			t.Errorf("there are only %d steps", step)
		}
	}
}

// TestDisksThatWerePutAsideAreNamed reads what the states say about a disk that was put aside.
func TestDisksThatWerePutAsideAreNamed(t *testing.T) {
	h := nodeWithGuest(t, "nspawn")
	report := hosttest.Converge(t, h.Host, guest.Functions(), "present", another("nspawn"))
	if text := strings.Join(report.Warnings, "\n"); !strings.Contains(text, "rm -rf --one-file-system "+aside) {
		t.Errorf("the warnings are %q", text)
	}
	_, diff := hosttest.Look(t, h.Host, guest.Functions(), "only",
		value.NewMap("name", "guests", "guests", value.NewList(idB)))
	if !strings.Contains(diff.Comment, "an earlier guest web1 is kept in "+aside) {
		t.Errorf("the comment is %q", diff.Comment)
	}
}

// TestOnlyWholeDisksArePutAside makes a guest in the place of one that was not complete, and of one whose disk is
// missing.
func TestOnlyWholeDisksArePutAside(t *testing.T) {
	h := statetest.NewHost(t)
	node(t, h)
	h.Put("/var/lib/corpus-guests/web1.json", `{"id":"`+idA+`","driver":"nspawn","step":"creating"}`+"\n")
	h.Put("/var/lib/machines/.new-"+idA+"/data", "x")
	hosttest.Converge(t, h.Host, guest.Functions(), "present", another("nspawn"))
	if names, _ := h.Files.ReadDir("/var/lib/machines"); len(names) != 1 {
		t.Errorf("there are %v", names)
	}
	h = statetest.NewHost(t)
	node(t, h)
	h.Put("/var/lib/corpus-guests/web1.json", `{"id":"`+idA+`","driver":"nspawn","step":"ready"}`+"\n")
	resource := hosttest.Resource(t, guest.Functions(), "present", another("nspawn"))
	if _, err := resource.Check(context.Background(), h.Host); err == nil ||
		!strings.Contains(err.Error(), "is missing") {
		t.Errorf("the error is %v", err)
	}
}
