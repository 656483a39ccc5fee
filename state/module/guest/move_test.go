package guest_test

import (
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module/guest"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// data is a file of a guest that has run.
const data = "/var/lib/machines/web1/srv/data"

// nodeWithGuest returns a node on which web1 runs.
func nodeWithGuest(t *testing.T, driver string) *statetest.Host {
	t.Helper()
	h := statetest.NewHost(t)
	node(t, h)
	h.Put("/var/lib/corpus-guests/web1.json", `{"id":"`+idA+`","driver":"`+driver+`","step":"ready"}`+"\n")
	h.Put(data, "orders")
	h.Put("/units", unitOf(driver)+" active enabled\n")
	return h
}

// TestInterruptedMovesLoseNoDisk stops each step on the node that a guest leaves, and runs it again. The guest is
// stopped before its disk is archived, and the disk is removed only when it is among the deleted ones.
func TestInterruptedMovesLoseNoDisk(t *testing.T) {
	leave := value.NewMap("name", "guests", "guests", value.NewList())
	keep := value.NewMap("name", "web1", "disk", idA, "file", archive)
	drop := value.NewMap("name", "guests", "deleted", value.NewList(idA))
	for _, driver := range drivers() {
		for step, more := 0, true; more; step++ {
			h := nodeWithGuest(t, driver)
			more = stopAt(t, h, step, "only", leave)
			hosttest.Converge(t, h.Host, guest.Functions(), "only", leave)
			if text := h.Text("/units"); strings.Contains(text, "active enabled") {
				t.Fatalf("stopped at step %d: the guest that left still runs:\n%s", step, text)
			}
			more = stopAt(t, h, step, "archived", keep) || more
			hosttest.Converge(t, h.Host, guest.Functions(), "archived", keep)
			if h.Text(data) != "orders" || !strings.Contains(h.Text(archive), "orders") {
				t.Errorf("stopped at step %d: the disk, or its archive, lacks the data of the guest", step)
			}
			more = stopAt(t, h, step, "only", drop) || more
			hosttest.Converge(t, h.Host, guest.Functions(), "only", drop)
			if names, _ := h.Files.ReadDir("/var/lib/machines"); len(names) > 0 {
				t.Errorf("stopped at step %d of the removal: %v is left", step, names)
			}
			if !more && step < 4 {
				t.Errorf("a move has only %d steps", step)
			}
		}
	}
}

// TestInterruptedArrivalsAreFinished stops each step with which a node makes the disk of a guest from its archive.
func TestInterruptedArrivalsAreFinished(t *testing.T) {
	for _, driver := range drivers() {
		before := nodeWithGuest(t, driver)
		before.Put("/units", "")
		hosttest.Converge(t, before.Host, guest.Functions(), "archived",
			value.NewMap("name", "web1", "disk", idA, "file", archive))
		for step, more := 0, true; more; step++ {
			h := statetest.NewHost(t)
			node(t, h)
			arrive(t, h)
			h.Put(archive, before.Text(archive))
			if more = stopAt(t, h, step, "present", moved(driver)); !more && step < 6 {
				t.Errorf("an arrival has only %d steps", step)
			}
			hosttest.Converge(t, h.Host, guest.Functions(), "present", moved(driver))
			if got := h.Text(data); got != "orders" {
				t.Errorf("stopped at step %d: the guest has %q", step, got)
			}
			leftovers(t, h, step)
			if names, _ := h.Files.ReadDir("/var/lib/machines"); len(names) != 1 {
				t.Errorf("stopped at step %d: there are %v", step, names)
			}
		}
	}
}
