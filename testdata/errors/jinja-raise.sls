{{ raise('set the pillar web:port') }} # error: set the pillar web:port // look at the place that the excerpt shows
