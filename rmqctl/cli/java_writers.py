"""The check for a Java broker, by the name that commands import it by."""

from rmqctl.admin.java_writers import refuse_beside_java as refuse_beside_java
