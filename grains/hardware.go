package grains

import (
	"cmp"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/value"
)

func (c *collector) hardware() {
	c.processors()
	c.memory()
	c.firmware()
	c.deviceTree()
	c.disks()
	c.set("zfs_support", c.machine.exists("sys/module/zfs"))
}

// processors reads the descriptions of only the first processors, since the kernel needs long to describe hundreds of
// them, and counts the processors from another file.
func (c *collector) processors() {
	const enough = 32 << 10
	model, flags := "Unknown", value.NewList()
	described := 0
	text := c.machine.head("proc/cpuinfo", enough)
	if len(text) == enough {
		text = text[:strings.LastIndex(text, "\n\n")+1]
	}
	for key, val := range pairs(text, ":") {
		switch key {
		case "processor":
			described++
		case "# processors": // s390
			described, _ = strconv.Atoi(val)
		case "Processor": // 32 bit ARM
			model, _, _ = strings.Cut(val, "-")
			described = max(described, 1)
		case "vendor_id", "model name", "cpu":
			model = val
		case "flags", "Features":
			flags = value.Strings(strings.Fields(val)...)
		}
	}
	c.set("num_cpus", cmp.Or(countCPUs(c.machine.line("sys/devices/system/cpu/online")), described))
	c.set("cpu_model", model)
	c.set("cpu_flags", flags)
}

// countCPUs counts the elements of a list such as 0-3,6.
func countCPUs(list string) int {
	count := 0
	for span := range strings.SplitSeq(list, ",") {
		from, to, ranged := strings.Cut(span, "-")
		if !ranged {
			to = from
		}
		low, err1 := strconv.Atoi(from)
		high, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || high < low {
			return 0
		}
		count += high - low + 1
	}
	return count
}

// memory sets the memory in MiB, rounded down.
func (c *collector) memory() {
	sizes := map[string]int{}
	for key, val := range pairs(c.machine.read("proc/meminfo"), ":") {
		if kib, err := strconv.Atoi(strings.TrimSuffix(val, " kB")); err == nil {
			sizes[key] = kib / 1024
		}
	}
	c.set("mem_total", sizes["MemTotal"])
	c.set("swap_total", sizes["SwapTotal"])
}

// firmware sets the facts that the maker of the board recorded. Only root can read serial number and UUID.
func (c *collector) firmware() {
	for _, f := range [][2]string{
		{"biosversion", "bios_version"}, {"biosvendor", "bios_vendor"}, {"biosreleasedate", "bios_date"},
		{"boardname", "board_name"}, {"productname", "product_name"}, {"manufacturer", "sys_vendor"},
		{"serialnumber", "product_serial"},
	} {
		c.setText(f[0], c.machine.line("sys/class/dmi/id/"+f[1]))
	}
	c.setText("uuid", strings.ToLower(c.machine.line("sys/class/dmi/id/product_uuid")))
	vars := "sys/firmware/efi/efivars"
	c.set("efi", c.machine.exists(vars) || c.machine.exists("sys/firmware/efi/vars"))
	secure := false
	for _, name := range c.machine.names(vars) {
		if strings.HasPrefix(name, "SecureBoot-") {
			secure = strings.HasSuffix(c.machine.read(filepath.Join(vars, name)), "\x01")
		}
	}
	c.set("efi-secure-boot", secure)
}

// deviceTree sets the facts of boards without a BIOS.
func (c *collector) deviceTree() {
	read := func(name string) string {
		return strings.TrimRight(c.machine.read("proc/device-tree/"+name), "\x00")
	}
	if maker, product, both := strings.Cut(read("model"), ","); both {
		c.set("manufacturer", maker)
		c.set("productname", product)
	} else {
		c.setText("productname", maker)
	}
	c.setText("serialnumber", read("system-id"))
	c.setText("serialnumber", read("serial-number"))
}

// disks lists block devices; those that do not rotate are ssds.
func (c *collector) disks() {
	disks, ssds := value.NewList(), value.NewList()
	for _, name := range c.machine.names("sys/block") {
		if strings.HasPrefix(c.machine.link("sys/block/"+name), "../devices/virtual/") {
			continue
		}
		switch c.machine.line("sys/block/" + name + "/queue/rotational") {
		case "0":
			ssds.Append(name)
		case "1":
			disks.Append(name)
		}
	}
	c.set("disks", disks)
	c.set("ssds", ssds)
}
