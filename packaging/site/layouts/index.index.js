{{- /* The index of the search: the sections of all documents, with the text of each. */ -}}
{{- $all := slice -}}
{{- range site.Pages -}}
{{- $title := partial "title.html" . -}}{{- $url := strings.TrimPrefix "/" .RelPermalink -}}
{{- range $i, $part := split .Content "<h2 id=\"" -}}
{{- $id := "" -}}{{- $text := $part -}}{{- $head := "" -}}
{{- if $i -}}
{{- $id = index (split $part "\"") 0 -}}
{{- $head = index (split $part "</h2>") 0 | replaceRE "^[^>]*>" "" | plainify | htmlUnescape -}}
{{- $text = delimit (after 1 (split $part "</h2>")) "" -}}
{{- end -}}
{{- $plain := $text | plainify | htmlUnescape | replaceRE `\s+` " " -}}
{{- $all = $all | append (dict "t" $title "h" $head "u" (cond (eq $id "") $url (printf "%s#%s" $url $id)) "x" $plain) -}}
{{- end -}}
{{- end -}}
window.corpusIndex = {{ $all | jsonify }};
