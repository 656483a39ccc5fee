package grains

import (
	"cmp"
	"strings"
)

// virtual determines the kind of machine: physical, a hypervisor's name, or container. Salt uses systemd-detect-virt,
// virt-what, dmidecode or lspci, whichever is installed, so that its result depends on the packages of a host. Here the
// result is determined from the same sources as in those programs.
func (c *collector) virtual() {
	kind, subtype := c.hypervisor()
	if xen := c.xen(); xen != "" {
		kind, subtype = "xen", xen
		if strings.Contains(c.text("biosversion"), ".amazon") {
			subtype = "Amazon EC2"
		}
	}
	if container, sub := c.container(); container != "" || sub != "" {
		kind, subtype = cmp.Or(container, kind), sub
	}
	if kind == "" && subtype != "" {
		kind = "virtual"
	}
	c.set("virtual", cmp.Or(kind, "physical"))
	c.setText("virtual_subtype", subtype)
}

// hypervisor recognizes hypervisors by the vendor names in virtual hardware.
func (c *collector) hypervisor() (kind, subtype string) {
	product, maker, bios := c.text("productname"), c.text("manufacturer"), c.text("biosvendor")
	if strings.Contains(product, ".metal") {
		return "", "" // a bare-metal instance of Amazon EC2
	}
	all := strings.Join([]string{product, maker, bios, c.text("boardname")}, "\n")
	for _, sign := range []struct{ in, sign, kind, subtype string }{
		{product, "VirtualBox", "VirtualBox", ""},
		{product, "RHEV Hypervisor", "kvm", "rhev"},
		{product, "oVirt Node", "kvm", "ovirt"},
		{product, "Google", "gce", ""},
		{all, "BHYVE", "bhyve", ""},
		{all, "VMware", "VMware", ""},
		{all, "Parallels", "Parallels", ""},
		{all, "Amazon EC2", "Nitro", "Amazon EC2"},
		{all, "OpenStack", "kvm", ""},
		{all, "KVM", "kvm", ""},
		{all, "QEMU", "kvm", ""},
		{all, "Bochs", "kvm", ""},
		{all, "SeaBIOS", "kvm", ""},
	} {
		if strings.Contains(sign.in, sign.sign) {
			return sign.kind, sign.subtype
		}
	}
	if strings.Contains(maker, "Microsoft") && strings.Contains(product, "Virtual Machine") {
		return "VirtualPC", ""
	}
	if strings.Contains(c.text("cpu_model"), "QEMU Virtual CPU") {
		return "kvm", ""
	}
	return c.clock(), ""
}

// clock recognizes hypervisors by the clock that they provide. Small virtual machines have no firmware with the name of
// a vendor.
func (c *collector) clock() string {
	clocks := c.machine.read("sys/devices/system/clocksource/clocksource0/available_clocksource")
	switch {
	case strings.Contains(clocks, "kvm-clock"):
		return "kvm"
	case strings.Contains(clocks, "hyperv_clocksource"):
		return "VirtualPC"
	}
	return ""
}

// xen distinguishes the two kinds of Xen guests and the host that they run on.
func (c *collector) xen() string {
	switch {
	case c.machine.exists("proc/xen/xsd_kva") || strings.Contains(c.machine.read("proc/xen/capabilities"), "control_d"):
		return "Xen Dom0"
	case c.text("productname") == "HVM domU":
		return "Xen HVM DomU"
	case c.machine.exists("proc/xen/capabilities") || c.machine.exists("sys/bus/xen/drivers/xenconsole"):
		return "Xen PV DomU"
	}
	return ""
}

// container returns the kind of container that this is. If no source names it, the kind of virtual hardware below the
// container is returned.
func (c *collector) container() (kind, subtype string) {
	groups := c.machine.read("proc/1/cgroup")
	environ := c.machine.read("proc/1/environ")
	manager := c.machine.line("run/systemd/container")
	has := func(signs ...string) bool {
		for _, s := range signs {
			if strings.Contains(groups, s) {
				return true
			}
		}
		return false
	}
	switch {
	case c.machine.exists("proc/vz/version"):
		return "openvzhn", ""
	case c.machine.exists("proc/vz/veinfo"):
		return "openvzve", ""
	case has(":/lxc/") || strings.Contains(environ, "container=lxc"):
		return "container", "LXC"
	case has(":/kubepods/"):
		return "", "kubernetes"
	case has(":/libpod_parent/") || c.machine.exists("run/.containerenv"):
		return "", "libpod"
	case has(":/docker/", ":/docker-ce/", ":/system.slice/docker") || c.machine.exists(".dockerenv"):
		return "container", "Docker"
	case manager == "systemd-nspawn" || strings.Contains(environ, "container=systemd-nspawn"):
		return "systemd-nspawn", ""
	}
	return "", ""
}
