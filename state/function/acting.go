package function

// Acting makes the table of what module.run may call: everything that templates may, and functions
// that change the host. It is never given to a template.
func Acting(facts Facts) Table {
	t := New(facts)
	return t.add(
		alternativesActs(&facts), archiveActs(&facts), cmdActs(&facts), cpActs(&facts), cronActs(&facts), dataActs(&facts), fileActs(&facts), gitActs(&facts),
		grainsActs(&facts), groupActs(&facts), hostsActs(&facts), localeActs(&facts), networkActs(&facts), pipActs(&facts), pkgActs(&facts), serviceActs(&facts),
		shadowActs(&facts), sysctlActs(&facts), systemActs(&facts), timezoneActs(&facts), userActs(&facts))
}
