package function

// New makes the table of everything that templates may call.
func New(facts Facts) Table {
	f, t := &facts, Table{}
	return t.add(
		alternativesTable(f), archiveTable(f), cmdTable(f), configTable(f), cpTable(f), cronTable(f), dataTable(f), defaultsTable(f), digTable(f), diskTable(f),
		dnsutilTable(f), dockerTable(f), mysqlTable(f), environTable(f), fileTable(f), gitTable(f), grainsTable(f), groupTable(f), hashutilTable(f), hostsTable(f),
		httpTable(f), kmodTable(f), localeTable(f), logTable(f), matchTable(f), mineTable(f, t), mountTable(f), networkTable(f),
		pillarTable(f), pkgTable(f), pipTable(f), postgresTable(f), psTable(f), randomTable(f), saltutilTable(), serviceTable(f), shadowTable(f), slsutilTable(f), statusTable(f),
		sysTable(f, t), sysctlTable(f), systemTable(f), testTable(f, t), timezoneTable(f), userTable(f))
}
