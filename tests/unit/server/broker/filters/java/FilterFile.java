import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.rocketmq.broker.filter.ConsumerFilterManager;

/** Writes the file that RocketMQ's own manager makes: java -cp 'jars/*' FilterFile.java consumerFilter.json */
public class FilterFile {
    public static void main(String[] args) throws Exception {
        ConsumerFilterManager manager = new ConsumerFilterManager();
        manager.register("topicA", "groupA", "a > 5", "SQL92", 1795000000001L);
        manager.register("topicA", "groupB", "b = 'x\"é'", "SQL92", 1795000000002L);
        manager.register("topicB", "groupA", "a IS NULL", "SQL92", 1795000000003L);
        manager.unRegister("groupB");
        Files.writeString(Path.of(args[0]), manager.encode(true));
        System.exit(0);
    }
}
