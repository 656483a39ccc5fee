package docker

// limits holds arguments of docker_container.running that limit resources or are rarely used.
type limits struct {
	BlkioWeight     string `sls:"blkio_weight"`
	BlkioDevice     any    `sls:"blkio_weight_device"`
	CGroupParent    string `sls:"cgroup_parent"`
	CPUPeriod       string `sls:"cpu_period"`
	CPUQuota        string `sls:"cpu_quota"`
	DeviceReadBPS   any    `sls:"device_read_bps"`
	DeviceReadIOPS  any    `sls:"device_read_iops"`
	DeviceWriteBPS  any    `sls:"device_write_bps"`
	DeviceWriteIOPS any    `sls:"device_write_iops"`
	Isolation       string `sls:"isolation"`
	Swappiness      string `sls:"memory_swappiness"`
	Runtime         string `sls:"runtime"`
	StopTimeout     string `sls:"stop_timeout"`
	StorageOpts     any    `sls:"storage_opts"`
	CPUShares       string `sls:"cpu_shares"`
	CPUSetCPUs      string `sls:"cpuset_cpus"`
	CPUSetMems      string `sls:"cpuset_mems"`
	DNSOpt          any    `sls:"dns_opt"`
	DomainName      string `sls:"domainname"`
	GroupAdd        any    `sls:"group_add"`
	MACAddress      string `sls:"mac_address"`
	MemSwappiness   string `sls:"mem_swappiness"`
	MemorySwap      string `sls:"memory_swap"`
	MemSwapLimit    string `sls:"memswap_limit"`
	NetworkDisabled bool   `sls:"network_disabled"`
	OOMKillDisable  bool   `sls:"oom_kill_disable"`
	OOMScoreAdj     string `sls:"oom_score_adj"`
	PIDsLimit       string `sls:"pids_limit"`
	PublishAllPorts bool   `sls:"publish_all_ports"`
	StorageOpt      any    `sls:"storage_opt"`
	Sysctls         any    `sls:"sysctls"`
	UserNSMode      string `sls:"userns_mode"`
	VolumeDriver    string `sls:"volume_driver"`
}

// flags returns the options of docker create for these arguments.
func (l limits) flags() (args []string) {
	for _, f := range []struct {
		option string
		values []string
	}{
		{"--blkio-weight", []string{l.BlkioWeight}}, {"--blkio-weight-device", list(l.BlkioDevice)},
		{"--cgroup-parent", []string{l.CGroupParent}}, {"--cpu-period", []string{l.CPUPeriod}},
		{"--cpu-quota", []string{l.CPUQuota}},
		{"--device-read-bps", list(l.DeviceReadBPS)}, {"--device-read-iops", list(l.DeviceReadIOPS)},
		{"--device-write-bps", list(l.DeviceWriteBPS)},
		{"--device-write-iops", list(l.DeviceWriteIOPS)}, {"--isolation", []string{l.Isolation}},
		{"--runtime", []string{l.Runtime}},
		{"--stop-timeout", []string{l.StopTimeout}}, {"--storage-opt", list(l.StorageOpts)},
		{"--cpu-shares", []string{l.CPUShares}}, {"--cpuset-cpus", []string{l.CPUSetCPUs}},
		{"--cpuset-mems", []string{l.CPUSetMems}}, {"--dns-option", list(l.DNSOpt)}, {"--domainname", []string{l.DomainName}},
		{"--group-add", list(l.GroupAdd)}, {"--mac-address", []string{l.MACAddress}},
		{"--memory-swappiness", []string{l.MemSwappiness, l.Swappiness}},
		{"--memory-swap", []string{l.MemorySwap, l.MemSwapLimit}}, {"--oom-score-adj", []string{l.OOMScoreAdj}},
		{"--pids-limit", []string{l.PIDsLimit}},
		{"--storage-opt", list(l.StorageOpt)}, {"--sysctl", list(l.Sysctls)}, {"--userns", []string{l.UserNSMode}},
		{"--volume-driver", []string{l.VolumeDriver}},
	} {
		for _, v := range f.values {
			if v != "" {
				args = append(args, f.option+"="+v)
			}
		}
	}
	if l.OOMKillDisable {
		args = append(args, "--oom-kill-disable")
	}
	if l.PublishAllPorts {
		args = append(args, "--publish-all")
	}
	return args
}
