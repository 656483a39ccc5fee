import datetime


def date_cast(date):
    if date is None:
        return datetime.datetime.now()
    if isinstance(date, datetime.datetime):
        return date
    if isinstance(date, str):
        text = date.replace("Z", "+00:00")
        try:
            return datetime.datetime.fromisoformat(text)
        except ValueError:
            date = float(date) if date.replace(".", "", 1).isdigit() else date
    if isinstance(date, (int, float)):
        return datetime.datetime.fromtimestamp(date)
    raise ValueError("Unable to parse {}".format(date))


def date_format(date=None, format="%Y-%m-%d"):
    return date_cast(date).strftime(format)


strftime = date_format


def total_seconds(td):
    return td.total_seconds()
