# Metrics of the host, and with them those of the agent's last run.
{% import_yaml 'exporter/defaults.yaml' as defaults %}
{% set exporter = salt['pillar.get']('exporter', defaults, merge=true) %}
{% set textfiles = '/var/lib/prometheus/node-exporter' %}
prometheus-node-exporter:
  pkg.installed:
    - install_recommends: false
  service.running:
    - enable: true
    - require:
      - pkg: prometheus-node-exporter
    - watch:
      - file: /etc/default/prometheus-node-exporter

/etc/default/prometheus-node-exporter:
  file.managed:
    - contents: |
        # Written from the pillar: exporter.
        ARGS="{{ (['--web.listen-address=' ~ exporter.listen, '--collector.textfile.directory=' ~ textfiles] + exporter.arguments) | join(' ') }}"
    - mode: '0644'
    - require:
      - pkg: prometheus-node-exporter

# The next run writes the metrics.
/etc/systemd/system/corpus-agent.service.d/exporter.conf:
  file.managed:
    - contents: |
        [Service]
        Environment=CORPUS_METRICS_TEXTFILE={{ textfiles }}/corpus.prom
    - makedirs: true
    - mode: '0644'
    - require:
      - pkg: prometheus-node-exporter
