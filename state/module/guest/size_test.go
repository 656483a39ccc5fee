package guest_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module/guest"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// The mounts of nodes, as /proc/self/mountinfo has them.
const (
	plainNode   = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
	btrfsNode   = plainNode + "30 22 0:40 / /var/lib/machines rw - btrfs /dev/sdb rw,space_cache=v2\n"
	projectNode = plainNode + "30 22 8:16 / /var/lib rw - ext4 /dev/sdb rw,prjquota\n"
)

// sizes has the limits that the imitated quota programs set, by subvolume or project, and what is used of each.
type sizes struct {
	limit map[string]string
	used  string // of each, as the programs print it
	plain bool   // the root file system is a plain directory
	off   bool   // the quotas are switched off
}

// quotas adds the programs of quotas to a node.
func quotas(t *testing.T, h *statetest.Host, mounts string) *sizes {
	t.Helper()
	s := &sizes{limit: map[string]string{}, used: "1048576"}
	h.Put("/proc/self/mountinfo", mounts)
	s.add(t, h)
	return s
}

func (s *sizes) add(t *testing.T, h *statetest.Host) {
	t.Helper()
	tools := nodeTools(h)
	tools["btrfs"] = func(args []string, _ string) (string, error) {
		last := args[len(args)-1]
		switch strings.Join(args[:2], " ") {
		case "subvolume create":
			return "", h.Files.Mkdir(last, 0o755)
		case "subvolume show":
			if s.plain {
				return "", statetest.Code{Code: 1, Text: "ERROR: Not a Btrfs subvolume: Invalid argument"}
			}
		case "qgroup limit":
			if args[3] != "0/257" || last != "/var/lib/machines" {
				return "", statetest.Code{Code: 1, Text: "ERROR: unable to limit requested quota group: Disk quota exceeded"}
			}
			s.limit["subvolume"] = args[2]
		case "qgroup show":
			if s.off {
				return "", statetest.Code{Code: 1, Text: "ERROR: can't list qgroups: quotas not enabled"}
			}
			return "qgroupid rfer excl max_rfer\n-------- ---- ---- --------\n0/257 " + s.used + " 16384 " +
				cmp.Or(s.limit["subvolume"], "none") + "\n", nil
		}
		return "", nil
	}
	tools["chattr"] = func(args []string, _ string) (string, error) {
		s.limit["project"] = args[2]
		return "", nil
	}
	tools["setquota"] = func(args []string, _ string) (string, error) {
		s.limit[args[1]] = strings.Join(args[2:], " ")
		return "", nil
	}
	tools["repquota"] = func([]string, string) (string, error) {
		return "*** Report\n#0 -- 9 0 0 1 0 0\n#8 -- " + s.used + " 0 0 1 0 0\n", nil
	}
	statetest.UseTools(t, h, tools)
}

func sized(size string) *value.Map {
	args := web1("nspawn")
	args.Set("size", size)
	return args
}

// TestDisksHaveTheSizesThatTheirFileSystemCanLimit makes, enlarges and trims guests on nodes with different file
// systems.
func TestDisksHaveTheSizesThatTheirFileSystemCanLimit(t *testing.T) {
	for name, c := range map[string]struct{ mounts, key, first, larger string }{
		"btrfs":   {btrfsNode, "subvolume", "1073741824", "2147483648"},
		"project": {projectNode, "8", "0 1048576 0 0 /var/lib", "0 2097152 0 0 /var/lib"},
		"plain":   {plainNode, "", "", ""},
	} {
		h := statetest.NewHost(t)
		node(t, h)
		s := quotas(t, h, c.mounts)
		check := func(size, want string) {
			t.Helper()
			hosttest.Converge(t, h.Host, guest.Functions(), "present", sized(size))
			if got := s.limit[c.key]; got != want {
				t.Errorf("%s: with the size %s the limit is %q, want %q", name, size, got, want)
			}
		}
		check("1GiB", c.first)
		check("2GiB", c.larger)
		check("1GiB", c.first)
		_, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", sized("1GiB"))
		if limited := !strings.Contains(diff.Comment, "nothing limits"); limited != (c.first != "") {
			t.Errorf("%s: %s", name, diff.Comment)
		}
		s.used = "1048577"
		_, diff = hosttest.Look(t, h.Host, guest.Functions(), "present", sized("1MiB"))
		if !diff.Empty() || c.first != "" && !strings.Contains(diff.Comment, "keeps the size of 1.0 GiB") {
			t.Errorf("%s: a trim below what is used: %+v", name, diff)
		}
	}
}

// TestLimitsComeBackWithTheQuotas switches the quotas of a node off, by which btrfs forgets the limits, and on again.
func TestLimitsComeBackWithTheQuotas(t *testing.T) {
	h := statetest.NewHost(t)
	node(t, h)
	s := quotas(t, h, btrfsNode)
	hosttest.Converge(t, h.Host, guest.Functions(), "present", sized("1GiB"))
	s.off, s.limit["subvolume"] = true, ""
	for _, size := range []string{"1GiB", "2GiB", "1MiB"} {
		_, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", sized(size))
		if !diff.Empty() || !strings.Contains(diff.Comment, "quotas are switched off") {
			t.Errorf("quotas are off, and with the size %s: %+v", size, diff)
		}
	}
	s.off, s.used = false, "2147483648"
	_, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", sized("1GiB"))
	if !diff.Empty() || !strings.Contains(diff.Comment, "has no limit yet") {
		t.Errorf("the disk uses more than its size: %+v", diff)
	}
	s.used = "4096"
	hosttest.Converge(t, h.Host, guest.Functions(), "present", sized("1GiB"))
	if s.limit["subvolume"] != "1073741824" {
		t.Errorf("quotas are on again, and the limit is %q", s.limit["subvolume"])
	}
}

// TestInterruptedEnlargingIsFinished stops each step with which a guest is made with a size, and with which it gets
// another one.
func TestInterruptedEnlargingIsFinished(t *testing.T) {
	record := `{"id":"` + idA + `","driver":"nspawn","quota":"btrfs quota","size":1073741824,"step":"ready"}` + "\n"
	for name, steps := range map[string]int{"": 5, record: 2} {
		for step, more := 0, true; more && step <= steps; step++ { // later steps are those of guests without a size
			h := statetest.NewHost(t)
			node(t, h)
			s := quotas(t, h, btrfsNode)
			if name != "" {
				h.Put("/var/lib/corpus-guests/web1.json", record)
				h.Put("/var/lib/machines/web1/etc/machine-id", idA)
			}
			if more = stopAt(t, h, step, "present", sized("2GiB")); !more && step < steps {
				t.Errorf("there are only %d steps", step)
			}
			hosttest.Converge(t, h.Host, guest.Functions(), "present", sized("3GiB"))
			if got := s.limit["subvolume"]; got != "3221225472" {
				t.Errorf("stopped at step %d: the limit is %s", step, got)
			}
			leftovers(t, h, step)
		}
	}
}

// TestChangesOfSizeRestartNoGuest gives a guest another size. Its service watches guest.present.
func TestChangesOfSizeRestartNoGuest(t *testing.T) {
	h := statetest.NewHost(t)
	node(t, h)
	s := quotas(t, h, btrfsNode)
	hosttest.Converge(t, h.Host, guest.Functions(), "present", sized("1GiB"))
	_, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", sized("2GiB"))
	if diff.Changes.Len() > 0 || diff.Planned.Len() != 1 {
		t.Errorf("the changes are %v, and a dry run has %v", diff.Changes.Names(), diff.Planned.Names())
	}
	report := hosttest.Converge(t, h.Host, guest.Functions(), "present", sized("2GiB"))
	if report.Changes.Len() > 0 || !strings.Contains(report.Comment, "2GiB") || s.limit["subvolume"] != "2147483648" {
		t.Errorf("the report is %+v, and the limits are %v", report, s.limit)
	}
	s.plain = true
	resource, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", sized("3GiB"))
	if _, err := resource.Apply(t.Context(), h.Host, diff); err == nil || !strings.Contains(err.Error(), "Not a Btrfs") {
		t.Errorf("the limit of a plain directory: %v", err)
	}
}

// TestMovedDisksAreLimitedWhenTheyFit moves disks that use less and more than their limit.
func TestMovedDisksAreLimitedWhenTheyFit(t *testing.T) {
	h := statetest.NewHost(t)
	node(t, h)
	s := quotas(t, h, btrfsNode)
	arrive(t, h)
	args := moved("nspawn")
	args.Set("size", "1MiB")
	s.used = "1048577"
	hosttest.Converge(t, h.Host, guest.Functions(), "present", args)
	_, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", args)
	if s.limit["subvolume"] != "" || !strings.Contains(diff.Comment, "no limit yet") {
		t.Errorf("a disk above its limit: %v, %s", s.limit, diff.Comment)
	}
	s.used = "1048576"
	hosttest.Converge(t, h.Host, guest.Functions(), "present", args)
	if s.limit["subvolume"] != "1048576" {
		t.Errorf("a disk that fits: %v", s.limit)
	}
}

// TestQuotasBehindALinkAreFound has the disks of guests on another file system, behind a link.
func TestQuotasBehindALinkAreFound(t *testing.T) {
	h := statetest.NewHost(t)
	node(t, h)
	quotas(t, h, plainNode+"30 22 8:16 / /data rw - ext4 /dev/sdb rw,prjquota\n")
	h.Put("/data/machines/other", "")
	if err := h.MkdirAll("/var/lib"); err != nil {
		t.Fatal(err)
	}
	if err := h.Files.Symlink("/data/machines", "/var/lib/machines"); err != nil {
		t.Fatal(err)
	}
	_, diff := hosttest.Look(t, h.Host, guest.Functions(), "present", sized("1GiB"))
	if strings.Contains(diff.Comment, "nothing limits") {
		t.Error(diff.Comment)
	}
	if _, is := diff.Planned.Get("size"); !is {
		t.Errorf("the changes are %v", diff.Planned.Names())
	}
}
